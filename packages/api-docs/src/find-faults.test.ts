import { expect, it } from 'vitest';
import { CURSOR_PLACEHOLDERS, type DocsSource, type Operation } from './index.ts';
import { findFaults } from './test/find-faults.ts';
import { createLibrarySource } from './test/library.ts';

const source = createLibrarySource();
const [getBook, listLoans, lend] = source.operations;
if (getBook === undefined || listLoans === undefined || lend === undefined) throw new Error('operations are missing');

const withOperation = (changes: Partial<Operation>): DocsSource => ({
  ...source,
  operations: [{ ...getBook, ...changes }, listLoans, lend],
});
const [hours] = source.articles;
const [first] = getBook.examples;
const [shelf] = getBook.parameters;
if (first === undefined || shelf === undefined || hours === undefined)
  throw new Error('the library needs examples, parameters and an article');

it('findFaults returns nothing for a consistent source', () => {
  expect(findFaults(source)).toEqual([]);
});

it.each<[string, DocsSource]>([
  ['the parameter {isbn} is not described', withOperation({ parameters: [shelf] })],
  ['the path has no {isbn}', withOperation({ path: '/v1/shelves/{shelf}/book' })],
  ['the path parameter shelf must be required', withOperation({ parameters: [{ ...shelf, required: false }] })],
  ['two parameters are named shelf', withOperation({ parameters: [shelf, shelf] })],
  ['the parameter name key is reserved for a form field', withOperation({ parameters: [{ ...shelf, name: 'key' }] })],
  ['the query has no parameter at', withOperation({ paging: { parameter: 'at', next: ['n'], previous: ['p'] } })],
  [
    'an example uses {{nextCursor}}, but the operation is not paginated',
    withOperation({
      examples: [
        { ...first, request: { ...first.request, target: `/v1/shelves/a/books/1?at=${CURSOR_PLACEHOLDERS.next}` } },
      ],
    }),
  ],
  ['the source does not describe the key {{deskKey}}', { ...source, keys: source.keys.slice(1) }],
  ['the source does not describe the key {{otherKey}}', withOperation({ keys: [{ kind: 'other', required: true }] })],
  ['two responses have the status 200', withOperation({ responses: [...getBook.responses, ...getBook.responses] })],
  ['the status 200 of the example book is not listed', withOperation({ responses: getBook.responses.slice(1) })],
  ['AUTHENTICATION_ERROR has no page', { ...source, errors: {} }],
  ['AUTHENTICATION_ERROR has no example', withOperation({ examples: [first] })],
  ['two operations or examples are named book', withOperation({ examples: [first, first] })],
  ['two operations or examples are named book', withOperation({ id: 'book' })],
  ['two pages are named errors', { ...source, articles: [{ ...hours, name: 'errors' }] }],
  ['two pages are named opening-hours', { ...source, articles: [hours, hours] }],
  ['a/b is not a valid path segment', { ...source, articles: [{ ...hours, name: 'a/b' }] }],
])('findFaults reports "%s"', (fault, inconsistent) => {
  expect(findFaults(inconsistent).map((line) => line.replace(/^\w+: /, ''))).toContain(fault);
});
