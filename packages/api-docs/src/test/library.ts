import { ERRORS } from '@playline/errors';
import { z } from 'zod';
import {
  createResponse,
  type DocsSource,
  html,
  type KeySpec,
  type Operation,
  type Parameter,
  placeholderOf,
  RETRY_AFTER,
  toText,
} from '../index.ts';
import { createBookExamples, createLoanExamples, LOAN_ID } from './library-examples.ts';

// A fictional API with path parameters, query parameters with bounds, cursors, optional keys and one request body.

const KEYS: readonly KeySpec[] = [
  { kind: 'desk', header: 'x-desk-key', label: 'Desk key', isPublic: true, note: 'Posted on the wall.' },
  { kind: 'longTerm', header: 'x-long-term-key', label: 'Long-term key', isPublic: false, note: 'Kept at the desk.' },
];

const KINDS = ['lent', 'returned', 'renewed'] as const;

const bookSchema = z
  .object({ isbn: z.string(), title: z.string().nullable(), pages: z.int().min(1), state: z.literal('on the shelf') })
  .meta({ id: 'Book' });
const detailsSchema = z
  .discriminatedUnion('kind', [
    z.object({ kind: z.literal('lent'), reader: z.string() }),
    z.object({ kind: z.enum(['returned', 'renewed']), desk: z.int() }),
  ])
  .meta({ id: 'LoanDetails' });
const loanSchema = z.object({ id: z.uuid(), at: z.iso.datetime(), details: detailsSchema }).meta({ id: 'Loan' });
const pageSchema = z.object({ previous_cursor: z.string(), next_cursor: z.string() }).meta({ id: 'Page' });
const loansSchema = z.object({ result: z.array(loanSchema), page: pageSchema }).meta({ id: 'Loans' });
const lendingSchema = z
  .object({ loanId: z.uuid(), lentAt: z.iso.datetime(), isbn: z.string() })
  .meta({ id: 'Lending' });

const SHELF: Parameter = {
  name: 'shelf',
  in: 'path',
  required: true,
  description: 'Name of the shelf.',
  schema: z.string().regex(/^[a-z-]{1,64}$/),
};

const inQuery = (name: string, description: string, schema: z.ZodType): Parameter => ({
  name,
  in: 'query',
  required: false,
  description,
  schema,
});

const INVALID = createResponse(400, 'The request is not valid.', { codes: ['VALIDATION_ERROR'] });
const DENIED = createResponse(403, 'The key is not valid.', { codes: ['AUTHENTICATION_ERROR'] });
const NOT_FOUND = createResponse(404, 'There is no such shelf.', { codes: ['RESOURCE_NOT_FOUND'] });
const TOO_MANY = createResponse(429, 'Too many requests.', {
  codes: ['TOO_MANY_REQUESTS_ERROR'],
  headers: [RETRY_AFTER],
});

function createGetBook(publicUrl: string): Operation {
  return {
    id: 'getBook',
    method: 'GET',
    path: '/v1/shelves/{shelf}/books/{isbn}',
    summary: 'Get a book',
    description: ['Returns a book.'],
    keys: [{ kind: 'longTerm', required: false }],
    confirmation: null,
    parameters: [SHELF, { ...SHELF, name: 'isbn', description: 'ISBN.', schema: z.string().regex(/^[\d-]+$/) }],
    body: null,
    paging: null,
    responses: [
      createResponse(200, 'The book.', { schema: z.object({ result: bookSchema }) }),
      INVALID,
      DENIED,
      NOT_FOUND,
      TOO_MANY,
    ],
    examples: createBookExamples(publicUrl),
  };
}

function createListLoans(publicUrl: string): Operation {
  return {
    id: 'listLoans',
    method: 'GET',
    path: '/v1/shelves/{shelf}/loans',
    summary: 'List loans',
    description: ['Returns the loans for a shelf, oldest first.', 'Use `next_cursor` to get newer loans.'],
    keys: [{ kind: 'longTerm', required: false }],
    confirmation: null,
    parameters: [
      SHELF,
      inQuery('from', 'Start of the time range, inclusive.', z.iso.datetime()),
      inQuery('kind', 'Return only loans of this kind.', z.enum(KINDS).meta({ id: 'LoanKind' })),
      inQuery('page_cursor', 'Cursor from an earlier page.', z.string()),
      inQuery('page_size', 'Maximum number of loans per page.', z.int().min(1).max(200).default(100)),
    ],
    body: null,
    paging: { parameter: 'page_cursor', next: ['page', 'next_cursor'], previous: ['page', 'previous_cursor'] },
    responses: [createResponse(200, 'A page of loans.', { schema: loansSchema }), INVALID, DENIED, NOT_FOUND, TOO_MANY],
    examples: createLoanExamples(publicUrl),
  };
}

function createLend(): Operation {
  const body = toText({ loanId: LOAN_ID, lentAt: '2026-01-02T03:04:05Z', isbn: '0-19-852663-6' });
  const headers = { 'x-desk-key': placeholderOf('desk'), 'content-type': 'application/json' };
  return {
    id: 'lendBook',
    method: 'POST',
    path: '/v1/shelves/{shelf}/loans',
    summary: 'Lend a book',
    description: ['Lends a book to a reader.'],
    keys: [
      { kind: 'desk', required: true },
      { kind: 'longTerm', required: false },
    ],
    confirmation: null,
    parameters: [SHELF],
    body: {
      description: 'The book to lend.',
      schema: lendingSchema,
      refreshedFields: { ids: ['loanId'], times: ['lentAt'], hint: 'Every request creates a new loan.' },
    },
    paging: null,
    responses: [createResponse(204, 'The book was lent.'), INVALID],
    examples: [
      {
        name: 'lend',
        title: 'Lend a book',
        request: { method: 'POST', target: '/v1/shelves/poetry/loans', headers, body },
        response: { status: 204, headers: {}, body: null },
      },
    ],
  };
}

export function createLibrarySource(publicUrl = 'https://library.test'): DocsSource {
  const { VALIDATION_ERROR, AUTHENTICATION_ERROR, TOO_MANY_REQUESTS_ERROR } = ERRORS;
  return {
    area: 'Events',
    elsewhere: null,
    publicUrl,
    title: 'Library API',
    version: '2.1.0',
    summary: 'Books and loans',
    about: 'Find and lend books.',
    notes: ['No key is required.'],
    tag: { name: 'library', description: 'Shelves' },
    keys: KEYS,
    firstPage: {
      title: 'Library',
      lead: 'Find a book.',
      heading: 'Get your first book',
      anchor: 'first-book',
      before: html`<p>No key is required.</p>`,
      after: html`<p>You have found a book.</p>`,
    },
    operations: [createGetBook(publicUrl), createListLoans(publicUrl), createLend()],
    errors: {
      VALIDATION_ERROR,
      AUTHENTICATION_ERROR,
      RESOURCE_NOT_FOUND: { cause: 'This library has no such shelf.', fix: 'Go to the `desk`.' },
      TOO_MANY_REQUESTS_ERROR,
    },
    rejections: {},
    otherExamples: [],
    articles: [
      {
        name: 'opening-hours',
        area: 'Operate',
        title: 'Opening hours',
        summary: 'When the library is open.',
        content: html`<p>See <a href="opening-hours/weeks.txt">all weeks</a>.</p>`,
        files: [{ name: 'weeks.txt', text: 'Monday to Friday\n' }],
      },
    ],
  };
}
