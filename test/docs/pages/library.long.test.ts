import { describe, expect, it } from 'vitest';
import { type Library, openLibrary } from './library.ts';
import { expectReadable } from './probes.ts';
import { formOf, sendButton, sendForm, useBrowser, VIEWPORTS, visitPage } from './visit-docs.ts';

useBrowser();

const BOOK = 'Get a book';
const LOANS = 'List loans';
const LEND = 'Lend a book';

const lastOf = ({ received }: Library) => received.at(-1)!;

async function openReference() {
  const library = await openLibrary();
  return { library, page: (await visitPage(library.url, '/docs/reference')).page };
}

describe('the pages of an interface with reads', () => {
  it.each(VIEWPORTS)(
    'fit the screen, have readable contrast and cause no errors at $width pixels, $scheme',
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
});

describe('a form of an operation with parameters in its path', () => {
  it('sends the first example when nothing is typed: no key, no body', async () => {
    const library = await openLibrary();
    const { page } = await visitPage(library.url, '/docs');
    expect(await sendForm(formOf(page, BOOK))).toMatch(/\b200\b/);
    const { method, target, headers, body } = lastOf(library);
    expect([method, target, body]).toEqual(['GET', '/v1/shelves/poetry/books/0-19-852663-6', '']);
    expect(Object.keys(headers)).not.toContain('x-long-term-key');
    expect(Object.keys(headers)).not.toContain('content-type');
  });

  it('puts any typed text into one part of the path, and requires a text when there is none', async () => {
    const { library, page } = await openReference();
    const form = formOf(page, BOOK);
    await form.getByLabel(/shelf/).fill('a b/../é?x#y{isbn}$&');
    await sendForm(form);
    const shelf = encodeURIComponent('a b/../é?x#y{isbn}$&');
    expect(lastOf(library).target).toBe(`/v1/shelves/${shelf}/books/0-19-852663-6`);
    // A URL drops a path part of only dots, and would then address something else.
    for (const typed of ['', '.', '..']) {
      await form.getByLabel(/isbn/).fill(typed);
      await sendButton(form).click();
      expect(await page.evaluate('document.activeElement.id'), typed).toBe('getBook-isbn');
    }
    expect(library.received).toHaveLength(1);
  });

  it('sends an optional key when one is typed, and stores it nowhere', async () => {
    const { library, page } = await openReference();
    const [book, lend] = [formOf(page, BOOK), formOf(page, LEND)];
    await book.getByLabel(/Long-term key/).fill(' kept-secret ');
    await sendForm(formOf(page, LOANS));
    expect(lastOf(library).headers['x-long-term-key']).toBe('kept-secret');
    await lend.getByLabel(/Desk key/).fill('public-key');
    expect(await page.evaluate('JSON.stringify({ ...sessionStorage })')).toBe('{"playline-desk-key":"public-key"}');
    await sendForm(lend);
    expect(lastOf(library).headers).toMatchObject({ 'x-long-term-key': 'kept-secret', 'x-desk-key': 'public-key' });
  });
});

describe('a form of an operation that lists', () => {
  it('offers choices where values are fixed, takes digits as typed, and omits empty fields', async () => {
    const { library, page } = await openReference();
    const form = formOf(page, LOANS);
    const kind = form.getByLabel(/kind/);
    expect(await kind.inputValue()).toBe('lent');
    expect(await kind.locator('option').allTextContents()).toEqual(['', 'lent', 'returned', 'renewed']);
    await kind.selectOption('');
    await form.getByLabel(/from/).fill('');
    await form.getByLabel(/page_size/).fill('500');
    await sendForm(form);
    expect(lastOf(library).target).toBe('/v1/shelves/poetry/loans?page_size=500');
  });

  it('goes to the next and previous page with the same filters, once an answer has returned their cursors', async () => {
    const { library, page } = await openReference();
    const form = formOf(page, LOANS);
    const [previous, next] = ['Previous page', 'Next page'].map((name) => form.getByRole('button', { name }));
    const visible = async () => [await previous!.isVisible(), await next!.isVisible()];
    expect(await visible()).toEqual([false, false]);
    await sendForm(form);
    library.pageNumber = 8;
    await next!.click();
    await form.getByText('"at-9"').waitFor();
    const since = new URLSearchParams(lastOf(library).target.split('?')[1]);
    const filters = { from: '2026-01-01T00:00:00Z', kind: 'lent', page_size: '2' };
    expect(Object.fromEntries(since)).toEqual({ ...filters, page_cursor: 'at-8' });
    library.pageNumber = 6;
    await previous!.click();
    await form.getByText('"at-5"').waitFor();
    expect(lastOf(library).target).toContain('page_cursor=at-7');
    library.fails = true;
    await sendButton(form).click();
    await form.getByText('"VALIDATION_ERROR"').waitFor();
    expect(await visible()).toEqual([false, false]);
  });
});

it('a form of an operation that writes creates new values for the members that its interface names, and for no others', async () => {
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
