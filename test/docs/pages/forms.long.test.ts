import { describe, expect, it } from 'vitest';
import { sentMessages } from '../../../services/gateway/src/test/open-gateway.ts';
import {
  type DocsPage,
  fillKey,
  formOf,
  outcomeOf,
  sendButton,
  sendForm,
  useBrowser,
  visitDocs,
} from './visit-docs.ts';

useBrowser();

const INGEST = 'Ingest messages';
const ERASE = 'Erase data for an identity';

const idsSent = ({ gateway }: DocsPage) =>
  sentMessages(gateway.producer).map(({ messageId }) => Buffer.from(messageId).toString('hex'));

async function openWithKey(): Promise<DocsPage> {
  const opened = await visitDocs('/docs/reference');
  await fillKey(formOf(opened.page, INGEST), opened.gateway);
  return opened;
}

it('the first page shows the name of the product, and sends a first event when only one key is typed', async () => {
  const opened = await visitDocs('/docs');
  const { page, gateway } = opened;
  expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('Playline');
  expect(await page.getByRole('heading', { level: 2 }).first().textContent()).toBe('Send your first event');
  await fillKey(formOf(page, INGEST), gateway);
  expect(await sendForm(formOf(page, INGEST))).toMatch(/\b200\b/);
  expect(idsSent(opened)).toHaveLength(1);
});

describe('a key in a form', () => {
  it('is typed once for all forms, and is filled in on the next page of the tab', async () => {
    const { page, gateway } = await visitDocs('/docs');
    await fillKey(formOf(page, INGEST), gateway);
    await page.goto(`${gateway.url}/docs/reference`);
    for (const summary of [INGEST, 'Get tracking consent', 'Update tracking consent']) {
      const form = formOf(page, summary);
      expect(await form.getByLabel(/publishable/i).inputValue(), summary).toBe(gateway.key);
      expect(await sendForm(form), summary).toMatch(/\b20[04]\b/);
    }
  });

  it('is in no address and in no permanent storage; a secret key is in no storage at all', async () => {
    const { page, gateway } = await openWithKey();
    const addresses: string[] = [];
    page.on('request', (request) => addresses.push(request.url()));
    const erase = formOf(page, ERASE);
    await erase.getByLabel(/secret|api-key/i).fill(gateway.secretKey);
    await erase.getByLabel(/userId/).fill('u-1');
    await sendForm(formOf(page, INGEST));
    await sendButton(erase).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Erase' }).click();
    expect(await outcomeOf(erase)).toMatch(/\b202\b/);
    const stores = JSON.parse(
      await page.evaluate('JSON.stringify([{ ...sessionStorage }, { ...localStorage }, document.cookie])'),
    ) as [Record<string, string>, unknown, string];
    expect(Object.values(stores[0])).toEqual([gateway.key]);
    expect(stores.slice(1)).toEqual([{}, '']);
    expect(addresses.join()).not.toMatch(new RegExp(`${gateway.key}|${gateway.secretKey}`));
    await page.reload();
    expect(await erase.getByLabel(/secret|api-key/i).inputValue()).toBe('');
    expect(await erase.textContent()).toContain('forgotten');
    expect(await formOf(page, INGEST).textContent()).toContain('until you close this tab');
  });
});

describe('the button Send', () => {
  it.each(['with', 'without'])('creates a new id for each message on a page %s HTTPS', async (https) => {
    const opened = await visitDocs('/docs/reference');
    if (https === 'without') await opened.page.addInitScript('delete Crypto.prototype.randomUUID');
    await opened.page.reload();
    await fillKey(formOf(opened.page, INGEST), opened.gateway);
    for (let round = 0; round < 3; round++) expect(await sendForm(formOf(opened.page, INGEST))).toMatch(/\b200\b/);
    const ids = idsSent(opened);
    expect([ids.length, new Set(ids).size]).toEqual([3, 3]);
  });

  it('sends the same id again after a 500, as clients must', async () => {
    const opened = await openWithKey();
    opened.gateway.producer.mode = 'fail';
    expect(await sendForm(formOf(opened.page, INGEST))).toMatch(/\b500\b/);
    opened.gateway.producer.mode = 'acknowledge';
    expect(await sendForm(formOf(opened.page, INGEST))).toMatch(/\b200\b/);
    expect(new Set(idsSent(opened)).size).toBe(1);
  });

  it('keeps an id that the reader has typed', async () => {
    const opened = await openWithKey();
    const body = formOf(opened.page, INGEST).getByLabel(/Body/);
    const own = '0192f3a4-5b6c-7d8e-9f00-000000000001';
    await body.fill((await body.inputValue()).replace(/("messageId": )"[^"]*"/, `$1"${own}"`));
    for (let round = 0; round < 2; round++) await sendForm(formOf(opened.page, INGEST));
    expect(idsSent(opened)).toEqual([own, own].map((id) => id.replaceAll('-', '')));
  });
});

it('a form for an erasure requests confirmation first, and does nothing when the reader cancels', async () => {
  const { page, gateway } = await visitDocs('/docs/reference');
  const form = formOf(page, ERASE);
  await form.getByLabel(/secret|api-key/i).fill(gateway.secretKey);
  await form.getByLabel(/userId/).fill('u-1');
  let deletes = 0;
  page.on('request', (request) => request.method() === 'DELETE' && deletes++);
  const dialog = page.getByRole('dialog');
  for (const refuse of [() => page.keyboard.press('Escape'), () => page.keyboard.press('Enter')]) {
    await sendButton(form).click();
    expect(await dialog.textContent()).toContain('userId=u-1');
    await refuse();
    await dialog.waitFor({ state: 'hidden' });
  }
  expect(deletes).toBe(0);
  await sendButton(form).click();
  await dialog.getByRole('button', { name: 'Erase' }).click();
  expect(await outcomeOf(form)).toMatch(/\b202\b/);
  expect(deletes).toBe(1);
});

describe('the answer in a form', () => {
  it.each([
    [1280, 'beside'],
    [390, 'below'],
  ] as const)('is visible on a screen of %i pixels %s its request', async (width, side) => {
    const { page, gateway } = await visitDocs('/docs/reference', { width, scheme: 'light' });
    const form = formOf(page, INGEST);
    await fillKey(form, gateway);
    await sendForm(form);
    const request = await form.getByLabel(/Body/).boundingBox();
    const answer = await form.getByRole('region', { name: /^Answer/ }).boundingBox();
    if (request === null || answer === null) throw new Error('not shown');
    if (side === 'beside') {
      expect(answer.x).toBeGreaterThanOrEqual(request.x + request.width);
      expect(answer.y).toBeLessThan(request.y + request.height);
    } else expect(answer.y).toBeGreaterThanOrEqual(request.y + request.height);
  });

  it('shows its links as links to pages of the same service', async () => {
    const { page, gateway } = await openWithKey();
    const form = formOf(page, INGEST);
    await form.getByLabel(/Body/).fill('{"messages":[{"type":"click","messageId":"<img src=x onerror=alert(1)>"}]}');
    expect(await sendForm(form)).toMatch(/\b400\b/);
    const answer = form.getByRole('region', { name: /^Answer/ });
    expect(await answer.textContent()).toContain('"messageId": "<img src=x onerror=alert(1)>"');
    expect(await answer.locator('img').count()).toBe(0);
    await answer.getByRole('link', { name: 'UNSUPPORTED_TYPE' }).click();
    expect(page.url()).toBe(`${gateway.url}/docs/rejections/UNSUPPORTED_TYPE`);
    await page.goto(`${gateway.url}/docs/reference`);
    await form.getByLabel(/Body/).fill('{');
    await sendForm(form);
    await answer.getByRole('link', { name: /^https:.*VALIDATION_ERROR/ }).click();
    expect(page.url()).toBe(`${gateway.url}/docs/errors/VALIDATION_ERROR`);
  });
});
