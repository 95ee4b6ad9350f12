import { expect, it } from 'vitest';
import { type Library, openLibrary } from './library.ts';
import { expectReadable } from './probes.ts';
import { formOf, sendButton, sendForm, useBrowser, VIEWPORTS, visitPage } from './visit-docs.ts';

useBrowser();

const BOOK = 'Get a book';
const LOANS = 'List loans';
const LEND = 'Lend a book';

const lastRequest = ({ received }: Library) => received.at(-1)!;

async function openReference() {
  const library = await openLibrary();
  return { library, page: (await visitPage(library.url, '/docs/reference')).page };
}

it.each(VIEWPORTS)(
  'documentation pages fit the screen, have readable contrast and load without errors at $width pixels, $scheme',
  async (viewport) => {
    const { url } = await openLibrary();
    const { page, faults } = await visitPage(url, '/docs', viewport);
    for (const path of ['/docs', '/docs/reference', '/docs/errors', '/docs/errors/VALIDATION_ERROR']) {
      await page.goto(url + path);
      await expectReadable(page, path);
      expect(faults.splice(0), path).toEqual([]);
    }
  },
);

it('an unedited form sends the first example without a key and without a body', async () => {
  const library = await openLibrary();
  const { page } = await visitPage(library.url, '/docs');
  expect(await sendForm(formOf(page, BOOK))).toMatch(/\b200\b/);
  const { method, target, headers, body } = lastRequest(library);
  expect([method, target, body]).toEqual(['GET', '/v1/shelves/poetry/books/0-19-852663-6', '']);
  expect(Object.keys(headers)).not.toContain('x-long-term-key');
  expect(Object.keys(headers)).not.toContain('content-type');
});

it('a form encodes any value into one path segment and requires a value', async () => {
  const { library, page } = await openReference();
  const form = formOf(page, BOOK);
  await form.getByLabel(/shelf/).fill('a b/../é?x#y{isbn}$&');
  await sendForm(form);
  const shelf = encodeURIComponent('a b/../é?x#y{isbn}$&');
  expect(lastRequest(library).target).toBe(`/v1/shelves/${shelf}/books/0-19-852663-6`);
  // Browsers resolve the path segments `.` and `..`, which would change the URL.
  for (const value of ['', '.', '..']) {
    await form.getByLabel(/isbn/).fill(value);
    await sendButton(form).click();
    expect(await page.evaluate('document.activeElement.id'), value).toBe('getBook-isbn');
  }
  expect(library.received).toHaveLength(1);
});

it('a form sends an optional key and does not store the key', async () => {
  const { library, page } = await openReference();
  const [book, lend] = [formOf(page, BOOK), formOf(page, LEND)];
  await book.getByLabel(/Long-term key/).fill(' kept-secret ');
  await sendForm(formOf(page, LOANS));
  expect(lastRequest(library).headers['x-long-term-key']).toBe('kept-secret');
  await lend.getByLabel(/Desk key/).fill('public-key');
  expect(await page.evaluate('JSON.stringify({ ...sessionStorage })')).toBe('{"playline-desk-key":"public-key"}');
  await sendForm(lend);
  expect(lastRequest(library).headers).toMatchObject({ 'x-long-term-key': 'kept-secret', 'x-desk-key': 'public-key' });
});

it('a form offers enum values, sends numbers unchanged and omits empty fields', async () => {
  const { library, page } = await openReference();
  const form = formOf(page, LOANS);
  const kind = form.getByLabel(/kind/);
  expect(await kind.inputValue()).toBe('lent');
  expect(await kind.locator('option').allTextContents()).toEqual(['', 'lent', 'returned', 'renewed']);
  await kind.selectOption('');
  await form.getByLabel(/from/).fill('');
  await form.getByLabel(/page_size/).fill('500');
  await sendForm(form);
  expect(lastRequest(library).target).toBe('/v1/shelves/poetry/loans?page_size=500');
});

it('the buttons for the next and previous page appear after a response with cursors and keep the filters', async () => {
  const { library, page } = await openReference();
  const form = formOf(page, LOANS);
  const [previous, next] = ['Previous page', 'Next page'].map((name) => form.getByRole('button', { name }));
  const visible = async () => [await previous!.isVisible(), await next!.isVisible()];
  expect(await visible()).toEqual([false, false]);
  await sendForm(form);
  library.pageNumber = 8;
  await next!.click();
  await form.getByText('"at-9"').waitFor();
  const since = new URLSearchParams(lastRequest(library).target.split('?')[1]);
  const filters = { from: '2026-01-01T00:00:00Z', kind: 'lent', page_size: '2' };
  expect(Object.fromEntries(since)).toEqual({ ...filters, page_cursor: 'at-8' });
  library.pageNumber = 6;
  await previous!.click();
  await form.getByText('"at-5"').waitFor();
  expect(lastRequest(library).target).toContain('page_cursor=at-7');
  library.isFailing = true;
  await sendButton(form).click();
  await form.getByText('"VALIDATION_ERROR"').waitFor();
  expect(await visible()).toEqual([false, false]);
});

it('a form generates new values only for the fields declared in `refreshedFields`', async () => {
  const { library, page } = await openReference();
  const form = formOf(page, LEND);
  await form.getByLabel(/Desk key/).fill('desk');
  await sendForm(form);
  await sendForm(form);
  await sendButton(form).click();
  await expect.poll(() => library.received.length).toBe(3);
  const bodies = library.received.map(({ body }) => JSON.parse(body) as Record<string, string>);
  expect(new Set(bodies.map(({ loanId }) => loanId)).size).toBe(3);
  for (const { loanId, lentAt, isbn } of bodies) {
    expect(loanId).toMatch(/^[0-9a-f-]{36}$/);
    expect(Math.abs(Date.now() - Date.parse(lentAt ?? ''))).toBeLessThan(60_000);
    expect(isbn).toBe('0-19-852663-6');
  }
});
