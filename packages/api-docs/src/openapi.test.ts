import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, it } from 'vitest';
import { createDocuments } from './index.ts';
import { createLibrarySource } from './test/library.ts';

type Json = { [name: string]: Json };

const openapi: Json = JSON.parse(createDocuments(createLibrarySource()).get('/openapi.json')?.text ?? '{}');
const operationOf = (method: string, path: string): Json => openapi.paths?.[path]?.[method] ?? {};
const loans = operationOf('get', '/v1/shelves/{shelf}/loans');
const parametersOf = (operation: Json) => Object.values(operation.parameters ?? {}).filter(({ $ref }) => !$ref);
const parameterOf = (operation: Json, name: string) =>
  parametersOf(operation).find((one) => String(one.name) === name) ?? {};
const examplesOf = ({ examples = {} }: Json) =>
  Object.fromEntries(Object.entries(examples).map(([name, { value }]) => [name, value]));

const ajv = new Ajv2020({ strict: true, strictTypes: false, strictRequired: false, validateFormats: false });
const toKnown = (schema: unknown) =>
  JSON.parse(JSON.stringify(schema).replaceAll('"#/components/schemas/', '"urn:schema:'));
for (const [name, schema] of Object.entries(openapi.components?.schemas ?? {}))
  ajv.addSchema(toKnown(schema), `urn:schema:${name}`);

const operations = Object.values(openapi.paths ?? {}).flatMap((methods) => Object.values(methods));

it('a parameter of a path is described once for each variable of the path, and required', () => {
  for (const [path, methods] of Object.entries(openapi.paths ?? {}))
    for (const operation of Object.values(methods)) {
      const inPath = parametersOf(operation).filter((one) => String(one.in) === 'path');
      expect(inPath.map(({ name }) => `{${name}}`)).toEqual(path.match(/\{\w+\}/g));
      expect(inPath.every(({ required }) => Boolean(required))).toBe(true);
    }
});

it('a parameter of a path has the values of the examples, read out of their addresses, but for those that its schema refuses', () => {
  const book = operationOf('get', '/v1/shelves/{shelf}/books/{isbn}');
  expect(examplesOf(parameterOf(book, 'shelf'))).toMatchObject({ book: 'poetry', 'no-shelf': 'prose' });
  expect(examplesOf(parameterOf(book, 'shelf'))).not.toHaveProperty('odd-shelf');
  expect(examplesOf(parameterOf(book, 'isbn'))).toMatchObject({ book: '0-19-852663-6', 'odd-shelf': '1' });
});

it('a parameter of a query has choices, format, bounds and default as in the schema', () => {
  expect(parameterOf(loans, 'kind').schema).toEqual({ $ref: '#/components/schemas/LoanKind' });
  expect(openapi.components?.schemas?.LoanKind).toEqual({ type: 'string', enum: ['lent', 'returned', 'renewed'] });
  expect(parameterOf(loans, 'from').schema).toMatchObject({ type: 'string', format: 'date-time' });
  const pageSize = { type: 'integer', minimum: 1, maximum: 200, default: 100 };
  expect(parameterOf(loans, 'page_size')).toMatchObject({ in: 'query', required: false, schema: pageSize });
});

it('a parameter of a query has numbers as numbers in its examples, and none that is out of bounds', () => {
  expect(examplesOf(parameterOf(loans, 'page_size'))).toEqual({ loans: 2, 'next-loans': 2 });
});

it('a parameter of a query shows no placeholder as the value of a cursor', () => {
  expect(examplesOf(parameterOf(loans, 'page_cursor'))).toEqual({});
});

it('a parameter of a query shows nothing that its own schema forbids', () => {
  let seen = 0;
  for (const parameter of operations.flatMap(parametersOf))
    for (const [name, value] of Object.entries(examplesOf(parameter))) {
      seen++;
      expect(ajv.validate(toKnown(parameter.schema), value), `${parameter.name} ${name}`).toBe(true);
    }
  expect(seen).toBeGreaterThan(8);
});

it('an operation has no body where it takes none', () => {
  expect(operations.map(({ operationId, requestBody }) => [operationId, requestBody !== undefined])).toEqual([
    ['getBook', false],
    ['listLoans', false],
    ['lendBook', true],
  ]);
});

it('an operation may be called without a key that is not required, and with every one that it takes', () => {
  expect(loans.security).toEqual([{}, { longTermKey: [] }]);
  const lend = operationOf('post', '/v1/shelves/{shelf}/loans');
  expect(lend.security).toEqual([{ deskKey: [] }, { deskKey: [], longTermKey: [] }]);
  expect(Object.keys(openapi.components?.securitySchemes ?? {})).toEqual(['deskKey', 'longTermKey']);
});

it('an operation whose answers are pages links to the pages beside, by the cursors of the answer', () => {
  const links = loans.responses?.['200']?.links ?? {};
  const parametersOfLinks = Object.values(links).map(({ operationId, parameters }) => [operationId, parameters]);
  expect(parametersOfLinks).toEqual(
    ['next', 'previous'].map((which) => [
      'listLoans',
      {
        'path.shelf': '$request.path.shelf',
        'query.page_cursor': `$response.body#/page/${which}_cursor`,
      },
    ]),
  );
  expect(loans.responses?.['400']).not.toHaveProperty('links');
});

it('the schemas are complete: requests are open, answers are closed, and a choice of shapes names its discriminator', () => {
  const schemas = openapi.components?.schemas ?? {};
  const names = ['LoanKind', 'Lending', 'Book', 'Loans', 'Loan', 'LoanDetails', 'Page', 'ErrorEnvelope'];
  expect(Object.keys(schemas).sort()).toEqual(names.sort());
  expect(schemas.Lending).not.toHaveProperty('additionalProperties');
  expect(schemas.Book?.additionalProperties).toBe(false);
  const book = operationOf('get', '/v1/shelves/{shelf}/books/{isbn}').responses?.['200'];
  expect(book?.content?.['application/json']?.schema?.additionalProperties).toBe(false);
  const validate = ajv.compile({ $ref: 'urn:schema:LoanDetails' });
  expect(
    [
      { kind: 'lent', reader: 'r' },
      { kind: 'renewed', desk: 1 },
    ].map((one) => validate(one)),
  ).toEqual([true, true]);
  expect(
    [
      { kind: 'lent', desk: 1 },
      { kind: 'renewed', desk: 1, reader: 'r' },
    ].map((one) => validate(one)),
  ).toEqual([false, false]);
});

it('the schemas allow every answer that an example shows', () => {
  let seen = 0;
  for (const operation of operations)
    for (const response of Object.values(operation.responses ?? {})) {
      const content = response.content?.['application/json'];
      for (const [name, value] of Object.entries(examplesOf(content ?? {}))) {
        seen++;
        expect(ajv.validate(toKnown(content?.schema), value), `${name}: ${ajv.errorsText()}`).toBe(true);
      }
    }
  expect(seen).toBe(8);
});

it('the schemas are reached by every reference', () => {
  for (const [, pointer = ''] of JSON.stringify(openapi).matchAll(/"\$ref":"#\/([^"]*)"/g))
    expect(
      pointer.split('/').reduce<Json | undefined>((at, part) => at?.[part], openapi),
      pointer,
    ).toBeDefined();
});
