import { describe, expect, it } from 'vitest';
import { type Library, openLibrary } from './library.ts';
import { FAINT_TEXT, TOO_WIDE } from './probes.ts';
import { formOf, LOOKS, sendForm, useBrowser, visitPage } from './visit-docs.ts';

useBrowser();

const WIDE = { width: 1280, scheme: 'light' } as const;
const BOOK = 'Get a book';
const LOANS = 'List loans';
const LEND = 'Lend a book';

const lastOf = ({ received }: Library) => {
  const last = received.at(-1);
  if (last === undefined) throw new Error('the library got nothing');
  return last;
};

describe('the pages of an interface with reads', () => {
  it.each(LOOKS)(
    'fit the screen, have readable contrast and cause no errors at $width pixels, $scheme',
    async (look) => {
      const { url } = await openLibrary();
      for (const path of ['/docs', '/docs/reference', '/docs/errors', '/docs/errors/VALIDATION_ERROR']) {
        const { page, faults } = await visitPage(url, path, look);
        for (const state of ['folded', 'unfolded']) {
          if (state === 'unfolded')
            await page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })");
          expect(await page.evaluate(TOO_WIDE), `${path} ${state}: wider than the screen`).toEqual([]);
          expect(await page.evaluate(FAINT_TEXT), `${path} ${state}: contrast below 4.5`).toEqual([]);
        }
        expect(faults, path).toEqual([]);
      }
    },
  );
});

describe('a form of an operation with parameters in its path', () => {
  it('sends the first example when nothing is typed: no key, no body', async () => {
    const library = await openLibrary();
    const { page } = await visitPage(library.url, '/docs', WIDE);
    expect(await sendForm(formOf(page, BOOK))).toMatch(/\b200\b/);
    const { method, target, headers, body } = lastOf(library);
    expect([method, target, body]).toEqual(['GET', '/v1/shelves/poetry/books/0-19-852663-6', '']);
    expect(Object.keys(headers)).not.toContain('x-long-term-key');
    expect(Object.keys(headers)).not.toContain('content-type');
  });

  it('puts any typed text into one part of the path, and requires a text when there is none', async () => {
    const library = await openLibrary();
    const { page } = await visitPage(library.url, '/docs/reference', WIDE);
    const form = formOf(page, BOOK);
    await form.getByLabel(/shelf/).fill('a b/../é?x#y{isbn}$&');
    await sendForm(form);
    expect(lastOf(library).target).toBe(
      `/v1/shelves/${encodeURIComponent('a b/../é?x#y{isbn}$&')}/books/0-19-852663-6`,
    );
    // A URL drops a path part of only dots, and would then address something else.
    for (const typed of ['', '.', '..']) {
      await form.getByLabel(/isbn/).fill(typed);
      await form.getByRole('button', { name: /^Send/ }).click();
      expect(await page.evaluate('document.activeElement.id'), typed).toBe('getBook-isbn');
    }
    expect(library.received).toHaveLength(1);
  });

  it('sends an optional key when one is typed, and stores it nowhere', async () => {
    const library = await openLibrary();
    const { page } = await visitPage(library.url, '/docs/reference', WIDE);
    await formOf(page, BOOK)
      .getByLabel(/Long-term key/)
      .fill(' kept-secret ');
    await sendForm(formOf(page, LOANS));
    expect(lastOf(library).headers['x-long-term-key']).toBe('kept-secret');
    await formOf(page, LEND)
      .getByLabel(/Desk key/)
      .fill('public-key');
    expect(await page.evaluate('JSON.stringify({ ...sessionStorage })')).toBe('{"playline-desk-key":"public-key"}');
    await sendForm(formOf(page, LEND));
    expect(lastOf(library).headers).toMatchObject({ 'x-long-term-key': 'kept-secret', 'x-desk-key': 'public-key' });
  });
});

describe('a form of an operation that lists', () => {
  it('offers choices where values are fixed, takes digits as typed, and omits empty fields', async () => {
    const library = await openLibrary();
    const { page } = await visitPage(library.url, '/docs/reference', WIDE);
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
    const library = await openLibrary();
    const { page } = await visitPage(library.url, '/docs/reference', WIDE);
    const form = formOf(page, LOANS);
    const [previous, next] = ['Previous page', 'Next page'].map((name) => form.getByRole('button', { name }));
    if (previous === undefined || next === undefined) throw new Error('two buttons');
    expect([await previous.isVisible(), await next.isVisible()]).toEqual([false, false]);
    await sendForm(form);
    library.pageNumber = 8;
    await next.click();
    await form.getByText('"at-9"').waitFor();
    const since = new URLSearchParams(lastOf(library).target.split('?')[1]);
    expect(Object.fromEntries(since)).toEqual({
      from: '2026-01-01T00:00:00Z',
      kind: 'lent',
      page_size: '2',
      page_cursor: 'at-8',
    });
    library.pageNumber = 6;
    await previous.click();
    await form.getByText('"at-5"').waitFor();
    expect(lastOf(library).target).toContain('page_cursor=at-7');
    library.fails = true;
    await form.getByRole('button', { name: /^Send/ }).click();
    await form.getByText('"VALIDATION_ERROR"').waitFor();
    expect([await previous.isVisible(), await next.isVisible()]).toEqual([false, false]);
  });
});

describe('a form of an operation that writes', () => {
  it('creates new values for the members that its interface names, and for no others', async () => {
    const library = await openLibrary();
    const { page } = await visitPage(library.url, '/docs/reference', WIDE);
    const form = formOf(page, LEND);
    await form.getByLabel(/Desk key/).fill('desk');
    await sendForm(form);
    await sendForm(form);
    await form.getByRole('button', { name: /^Send/ }).click();
    await expect.poll(() => library.received.length).toBe(3);
    const bodies = library.received.map(({ body }) => JSON.parse(body) as Record<string, string>);
    expect(new Set(bodies.map(({ loanId }) => loanId)).size).toBe(3);
    for (const { loanId, lentAt, isbn } of bodies) {
      expect(loanId).toMatch(/^[0-9a-f-]{36}$/);
      expect(Math.abs(Date.now() - Date.parse(lentAt ?? ''))).toBeLessThan(60_000);
      expect(isbn).toBe('0-19-852663-6');
    }
  });
});
