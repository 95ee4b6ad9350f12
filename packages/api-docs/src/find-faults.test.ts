import { expect, it } from 'vitest';
import { CURSOR_PLACEHOLDERS, type DocsSource, type Operation } from './index.ts';
import { findFaults } from './test/find-faults.ts';
import { createLibrarySource } from './test/library.ts';

const source = createLibrarySource();
const [getBook, listLoans, lend] = source.operations;
if (getBook === undefined || listLoans === undefined || lend === undefined) throw new Error('the library has three');

const withOperation = (changed: Partial<Operation>): DocsSource => ({
  ...source,
  operations: [{ ...getBook, ...changed }, listLoans, lend],
});
const [hours] = source.articles;
const [first] = getBook.examples;
const [shelf] = getBook.parameters;
if (first === undefined || shelf === undefined || hours === undefined)
  throw new Error('a book has examples and parameters, and the library hours');

it('a source that contradicts itself nowhere has no faults', () => {
  expect(findFaults(source)).toEqual([]);
});

it.each<[string, DocsSource]>([
  ['nothing describes {isbn}', withOperation({ parameters: [shelf] })],
  ['the path has no {isbn}', withOperation({ path: '/v1/shelves/{shelf}/book' })],
  ['shelf is part of the path and not required', withOperation({ parameters: [{ ...shelf, required: false }] })],
  ['two parameters are called shelf', withOperation({ parameters: [shelf, shelf] })],
  ['a field of the form is called key already', withOperation({ parameters: [{ ...shelf, name: 'key' }] })],
  ['the query takes no at', withOperation({ paging: { parameter: 'at', next: ['n'], previous: ['p'] } })],
  [
    'an example gives {{nextCursor}}, and no answer is a page',
    withOperation({
      examples: [
        { ...first, request: { ...first.request, target: `/v1/shelves/a/books/1?at=${CURSOR_PLACEHOLDERS.next}` } },
      ],
    }),
  ],
  ['nothing describes the key {{deskKey}}', { ...source, keys: source.keys.slice(1) }],
  ['nothing describes the key {{otherKey}}', withOperation({ keys: [{ kind: 'other', required: true }] })],
  ['two answers have the status 200', withOperation({ answers: [...getBook.answers, ...getBook.answers] })],
  ['book is answered with 200, which is not listed', withOperation({ answers: getBook.answers.slice(1) })],
  ['AUTHENTICATION_ERROR has no page', { ...source, errors: {} }],
  ['AUTHENTICATION_ERROR has no example', withOperation({ examples: [first] })],
  ['two operations or examples are called book', withOperation({ examples: [first, first] })],
  ['two operations or examples are called book', withOperation({ id: 'book' })],
  ['two pages are called errors', { ...source, articles: [{ ...hours, name: 'errors' }] }],
  ['two pages are called opening-hours', { ...source, articles: [hours, hours] }],
  ['a/b is no part of an address', { ...source, articles: [{ ...hours, name: 'a/b' }] }],
])('a source has the fault that %s', (texts, faulty) => {
  expect(findFaults(faulty).map((line) => line.replace(/^\w+: /, ''))).toContain(texts);
});
