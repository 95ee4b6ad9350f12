import { expect, it } from 'vitest';
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

const sentIds = ({ gateway }: DocsPage) =>
  sentMessages(gateway.producer).map(({ messageId }) => Buffer.from(messageId).toString('hex'));

async function openWithKey(): Promise<DocsPage> {
  const opened = await visitDocs('/docs/reference');
  await fillKey(formOf(opened.page, INGEST), opened.gateway);
  return opened;
}

it('the first page shows the product name and sends an event after the reader enters a key', async () => {
  const opened = await visitDocs('/docs');
  const { page, gateway } = opened;
  expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('Playline');
  expect(await page.getByRole('heading', { level: 2 }).first().textContent()).toBe('Send your first event');
  await fillKey(formOf(page, INGEST), gateway);
  expect(await sendForm(formOf(page, INGEST))).toMatch(/\b200\b/);
  expect(sentIds(opened)).toHaveLength(1);
});

it('a publishable key is filled into every form, including forms on other pages in the same tab', async () => {
  const { page, gateway } = await visitDocs('/docs');
  await fillKey(formOf(page, INGEST), gateway);
  await page.goto(`${gateway.url}/docs/reference`);
  for (const summary of [INGEST, 'Get tracking consent', 'Update tracking consent']) {
    const form = formOf(page, summary);
    expect(await form.getByLabel(/publishable/i).inputValue(), summary).toBe(gateway.key);
    expect(await sendForm(form), summary).toMatch(/\b20[04]\b/);
  }
});

it('keys never appear in URLs or permanent storage, and secret keys are never stored', async () => {
  const { page, gateway } = await openWithKey();
  const urls: string[] = [];
  page.on('request', (request) => urls.push(request.url()));
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
  expect(urls.join()).not.toMatch(new RegExp(`${gateway.key}|${gateway.secretKey}`));
  await page.reload();
  expect(await erase.getByLabel(/secret|api-key/i).inputValue()).toBe('');
  expect(await erase.textContent()).toContain('forgotten');
  expect(await formOf(page, INGEST).textContent()).toContain('until you close this tab');
});

it.each(['with', 'without'])('the Send button creates a new message id for each request %s HTTPS', async (https) => {
  const opened = await visitDocs('/docs/reference');
  if (https === 'without') await opened.page.addInitScript('delete Crypto.prototype.randomUUID');
  await opened.page.reload();
  await fillKey(formOf(opened.page, INGEST), opened.gateway);
  for (let round = 0; round < 3; round++) expect(await sendForm(formOf(opened.page, INGEST))).toMatch(/\b200\b/);
  const ids = sentIds(opened);
  expect([ids.length, new Set(ids).size]).toEqual([3, 3]);
});

it('the Send button resends the same message id after a 500', async () => {
  const opened = await openWithKey();
  opened.gateway.producer.mode = 'fail';
  expect(await sendForm(formOf(opened.page, INGEST))).toMatch(/\b500\b/);
  opened.gateway.producer.mode = 'acknowledge';
  expect(await sendForm(formOf(opened.page, INGEST))).toMatch(/\b200\b/);
  expect(new Set(sentIds(opened)).size).toBe(1);
});

it('the Send button does not replace an id that the reader entered', async () => {
  const opened = await openWithKey();
  const body = formOf(opened.page, INGEST).getByLabel(/Body/);
  const id = '0192f3a4-5b6c-7d8e-9f00-000000000001';
  await body.fill((await body.inputValue()).replace(/("messageId": )"[^"]*"/, `$1"${id}"`));
  for (let round = 0; round < 2; round++) await sendForm(formOf(opened.page, INGEST));
  expect(sentIds(opened)).toEqual(Array(2).fill(id.replaceAll('-', '')));
});

it('the erasure form requires confirmation and sends nothing if the reader cancels', async () => {
  const { page, gateway } = await visitDocs('/docs/reference');
  const form = formOf(page, ERASE);
  await form.getByLabel(/secret|api-key/i).fill(gateway.secretKey);
  await form.getByLabel(/userId/).fill('u-1');
  let deletes = 0;
  page.on('request', (request) => request.method() === 'DELETE' && deletes++);
  const dialog = page.getByRole('dialog');
  for (const cancel of [() => page.keyboard.press('Escape'), () => page.keyboard.press('Enter')]) {
    await sendButton(form).click();
    expect(await dialog.textContent()).toContain('userId=u-1');
    await cancel();
    await dialog.waitFor({ state: 'hidden' });
  }
  expect(deletes).toBe(0);
  await sendButton(form).click();
  await dialog.getByRole('button', { name: 'Erase' }).click();
  expect(await outcomeOf(form)).toMatch(/\b202\b/);
  expect(deletes).toBe(1);
});

it.each([
  [1280, 'next to'],
  [390, 'below'],
] as const)('on a screen %i pixels wide, the response appears %s the request', async (width, side) => {
  const { page, gateway } = await visitDocs('/docs/reference', { width, scheme: 'light' });
  const form = formOf(page, INGEST);
  await fillKey(form, gateway);
  await sendForm(form);
  const request = await form.getByLabel(/Body/).boundingBox();
  const response = await form.getByRole('region', { name: /^Response/ }).boundingBox();
  if (request === null || response === null) throw new Error('the form is not visible');
  if (side === 'next to') {
    expect(response.x).toBeGreaterThanOrEqual(request.x + request.width);
    expect(response.y).toBeLessThan(request.y + request.height);
  } else expect(response.y).toBeGreaterThanOrEqual(request.y + request.height);
});

it('error codes and links in the response lead to the documentation of the same service', async () => {
  const { page, gateway } = await openWithKey();
  const form = formOf(page, INGEST);
  await form.getByLabel(/Body/).fill('{"messages":[{"type":"click","messageId":"<img src=x onerror=alert(1)>"}]}');
  expect(await sendForm(form)).toMatch(/\b400\b/);
  const response = form.getByRole('region', { name: /^Response/ });
  expect(await response.textContent()).toContain('"messageId": "<img src=x onerror=alert(1)>"');
  expect(await response.locator('img').count()).toBe(0);
  await response.getByRole('link', { name: 'UNSUPPORTED_TYPE' }).click();
  expect(page.url()).toBe(`${gateway.url}/docs/rejections/UNSUPPORTED_TYPE`);
  await page.goto(`${gateway.url}/docs/reference`);
  await form.getByLabel(/Body/).fill('{');
  await sendForm(form);
  await response.getByRole('link', { name: /^https:.*VALIDATION_ERROR/ }).click();
  expect(page.url()).toBe(`${gateway.url}/docs/errors/VALIDATION_ERROR`);
});
