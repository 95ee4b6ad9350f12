import { ERRORS } from '@playline/errors';
import { z } from 'zod';
import {
  createAnswer,
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

// An invented interface with what reading interfaces have: parameters in the path, bounds in the query, no bodies,
// cursors, optional keys. One operation writes.

const KEYS: readonly KeySpec[] = [
  { kind: 'desk', header: 'x-desk-key', label: 'Desk key', isPublic: true, note: 'Hangs on the wall.' },
  { kind: 'longTerm', header: 'x-long-term-key', label: 'Long-term key', isPublic: false, note: 'Stays at the desk.' },
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

const INVALID = createAnswer(400, 'The request is not valid.', { codes: ['VALIDATION_ERROR'] });
const REFUSED = createAnswer(403, 'The key is not valid.', { codes: ['AUTHENTICATION_ERROR'] });
const NOT_FOUND = createAnswer(404, 'There is no such shelf.', { codes: ['RESOURCE_NOT_FOUND'] });
const TOO_MANY = createAnswer(429, 'Too many requests.', {
  codes: ['TOO_MANY_REQUESTS_ERROR'],
  headers: [RETRY_AFTER],
});

function createGetBook(publicUrl: string): Operation {
  return {
    id: 'getBook',
    method: 'GET',
    path: '/v1/shelves/{shelf}/books/{isbn}',
    summary: 'Get a book',
    description: ['Gives one book of a shelf.'],
    keys: [{ kind: 'longTerm', required: false }],
    confirmation: null,
    parameters: [SHELF, { ...SHELF, name: 'isbn', description: 'Its number.', schema: z.string().regex(/^[\d-]+$/) }],
    body: null,
    paging: null,
    answers: [
      createAnswer(200, 'The book.', { schema: z.object({ result: bookSchema }) }),
      INVALID,
      REFUSED,
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
    description: ['Gives the loans of a shelf, the oldest first.', '`next_cursor` gives what is newer.'],
    keys: [{ kind: 'longTerm', required: false }],
    confirmation: null,
    parameters: [
      SHELF,
      inQuery('from', 'The earliest, inclusive.', z.iso.datetime()),
      inQuery('kind', 'Loans of one kind.', z.enum(KINDS).meta({ id: 'LoanKind' })),
      inQuery('page_cursor', 'A cursor of an answer.', z.string()),
      inQuery('page_size', 'How many at most.', z.int().min(1).max(200).default(100)),
    ],
    body: null,
    paging: { parameter: 'page_cursor', next: ['page', 'next_cursor'], previous: ['page', 'previous_cursor'] },
    answers: [createAnswer(200, 'A page of loans.', { schema: loansSchema }), INVALID, REFUSED, NOT_FOUND, TOO_MANY],
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
    description: ['Lends one book.'],
    keys: [
      { kind: 'desk', required: true },
      { kind: 'longTerm', required: false },
    ],
    confirmation: null,
    parameters: [SHELF],
    body: {
      description: 'Which book.',
      schema: lendingSchema,
      fresh: { ids: ['loanId'], times: ['lentAt'], hint: 'Each Send is a loan of its own.' },
    },
    paging: null,
    answers: [createAnswer(204, 'The book is lent.'), INVALID],
    examples: [
      {
        name: 'lend',
        title: 'One book',
        request: { method: 'POST', target: '/v1/shelves/poetry/loans', headers, body },
        answer: { status: 204, headers: {}, body: null },
      },
    ],
  };
}

/** Documentation of a library that does not exist. */
export function createLibrarySource(publicUrl = 'https://library.test'): DocsSource {
  const { VALIDATION_ERROR, AUTHENTICATION_ERROR, TOO_MANY_REQUESTS_ERROR } = ERRORS;
  return {
    publicUrl,
    title: 'Library interface',
    version: '2.1.0',
    summary: 'Books and loans',
    about: 'Gives the books of shelves.',
    notes: ['No key is needed.'],
    tag: { name: 'library', description: 'Shelves' },
    keys: KEYS,
    firstPage: {
      title: 'Library',
      lead: 'Find a book.',
      heading: 'Get your first book',
      anchor: 'first-book',
      before: html`<p>You need nothing.</p>`,
      after: html`<p>There it is.</p>`,
      command: 'The same as a command',
    },
    operations: [createGetBook(publicUrl), createListLoans(publicUrl), createLend()],
    errors: {
      VALIDATION_ERROR,
      AUTHENTICATION_ERROR,
      RESOURCE_NOT_FOUND: { cause: 'This library has no such shelf.', fix: 'Go to the `desk`.' },
      TOO_MANY_REQUESTS_ERROR,
    },
    partCodes: null,
    otherExamples: [],
    articles: [
      {
        name: 'opening-hours',
        title: 'Opening hours',
        summary: 'When the doors are open.',
        content: html`<p>See <a href="opening-hours/weeks.txt">all weeks</a>.</p>`,
        files: [{ name: 'weeks.txt', text: 'Monday to Friday\n' }],
      },
    ],
  };
}
