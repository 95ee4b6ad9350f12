import { CURSOR_PLACEHOLDERS, type Example, envelope, placeholderOf, success } from '../index.ts';

export const LOAN_ID = '0192f3a4-5b6c-7d8e-9f00-112233445566';

const get = (target: string, headers: Readonly<Record<string, string>> = {}): Example['request'] => ({
  method: 'GET',
  target,
  headers,
  body: null,
});

export function createBookExamples(publicUrl: string): Example[] {
  return [
    {
      name: 'book',
      title: 'Get a book',
      request: get('/v1/shelves/poetry/books/0-19-852663-6'),
      response: success(200, { result: { isbn: '0-19-852663-6', title: null, pages: 96, state: 'on the shelf' } }),
    },
    {
      name: 'no-shelf',
      title: 'Unknown shelf',
      request: get('/v1/shelves/prose/books/0-19-852663-6'),
      response: envelope({ publicUrl }, 'RESOURCE_NOT_FOUND'),
    },
    {
      name: 'invalid-shelf',
      title: 'Invalid shelf name',
      request: get('/v1/shelves/%C3%A9t%C3%A9%2F7/books/1'),
      response: envelope({ publicUrl }, 'VALIDATION_ERROR', { details: { parameter: 'shelf' } }),
    },
    {
      name: 'wrong-key',
      title: 'Unknown key',
      request: get('/v1/shelves/poetry/books/1', { 'x-long-term-key': 'none' }),
      response: envelope({ publicUrl }, 'AUTHENTICATION_ERROR', { details: { header: 'x-long-term-key' } }),
    },
    {
      name: 'too-many',
      title: 'Rate limit exceeded',
      situation: 'queue',
      request: get('/v1/shelves/poetry/books/1'),
      response: envelope({ publicUrl }, 'TOO_MANY_REQUESTS_ERROR', { headers: { 'retry-after': '60' } }),
    },
  ];
}

export function createLoanExamples(publicUrl: string): Example[] {
  const loans = {
    result: [{ id: LOAN_ID, at: '2026-01-02T03:04:05Z', details: { kind: 'lent', reader: 'r-7' } }],
    page: { previous_cursor: 'cHJldmlvdXM', next_cursor: 'bmV4dA' },
  };
  return [
    {
      name: 'loans',
      title: 'Loans since January 1',
      request: get('/v1/shelves/poetry/loans?from=2026-01-01T00%3A00%3A00Z&kind=lent&page_size=2'),
      response: success(200, loans),
    },
    {
      name: 'next-loans',
      title: 'Newer loans',
      request: get(`/v1/shelves/poetry/loans?kind=lent&page_cursor=${CURSOR_PLACEHOLDERS.next}&page_size=2`, {
        'x-long-term-key': placeholderOf('longTerm'),
      }),
      response: success(200, loans),
    },
    {
      name: 'too-many-loans',
      title: 'Page size too large',
      request: get('/v1/shelves/poetry/loans?page_size=500'),
      response: envelope({ publicUrl }, 'VALIDATION_ERROR', { details: { parameter: 'page_size' } }),
    },
  ];
}
