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
const toInternalRefs = (schema: unknown) =>
  JSON.parse(JSON.stringify(schema).replaceAll('"#/components/schemas/', '"urn:schema:'));
for (const [name, schema] of Object.entries(openapi.components?.schemas ?? {}))
  ajv.addSchema(toInternalRefs(schema), `urn:schema:${name}`);

const operations = Object.values(openapi.paths ?? {}).flatMap((methods) => Object.values(methods));

it('each variable in a path has exactly one parameter, and the parameter is required', () => {
  for (const [path, methods] of Object.entries(openapi.paths ?? {}))
    for (const operation of Object.values(methods)) {
      const inPath = parametersOf(operation).filter((one) => String(one.in) === 'path');
      expect(inPath.map(({ name }) => `{${name}}`)).toEqual(path.match(/\{\w+\}/g));
      expect(inPath.every(({ required }) => Boolean(required))).toBe(true);
    }
});

it('the examples of a path parameter are the valid values in the example requests', () => {
  const book = operationOf('get', '/v1/shelves/{shelf}/books/{isbn}');
  expect(examplesOf(parameterOf(book, 'shelf'))).toMatchObject({ book: 'poetry', 'no-shelf': 'prose' });
  expect(examplesOf(parameterOf(book, 'shelf'))).not.toHaveProperty('invalid-shelf');
  expect(examplesOf(parameterOf(book, 'isbn'))).toMatchObject({ book: '0-19-852663-6', 'invalid-shelf': '1' });
});

it('a query parameter has the enum, format, bounds and default of its schema', () => {
  expect(parameterOf(loans, 'kind').schema).toEqual({ $ref: '#/components/schemas/LoanKind' });
  expect(openapi.components?.schemas?.LoanKind).toEqual({ type: 'string', enum: ['lent', 'returned', 'renewed'] });
  expect(parameterOf(loans, 'from').schema).toMatchObject({ type: 'string', format: 'date-time' });
  const pageSize = { type: 'integer', minimum: 1, maximum: 200, default: 100 };
  expect(parameterOf(loans, 'page_size')).toMatchObject({ in: 'query', required: false, schema: pageSize });
});

it('the examples of a numeric query parameter are numbers within its bounds', () => {
  expect(examplesOf(parameterOf(loans, 'page_size'))).toEqual({ loans: 2, 'next-loans': 2 });
});

it('the examples of a cursor parameter contain no placeholders', () => {
  expect(examplesOf(parameterOf(loans, 'page_cursor'))).toEqual({});
});

it('every example of a parameter is valid against the schema of the parameter', () => {
  let count = 0;
  for (const parameter of operations.flatMap(parametersOf))
    for (const [name, value] of Object.entries(examplesOf(parameter))) {
      count++;
      expect(ajv.validate(toInternalRefs(parameter.schema), value), `${parameter.name} ${name}`).toBe(true);
    }
  expect(count).toBeGreaterThan(8);
});

it('the document describes a request body only for operations that accept a body', () => {
  expect(operations.map(({ operationId, requestBody }) => [operationId, requestBody !== undefined])).toEqual([
    ['getBook', false],
    ['listLoans', false],
    ['lendBook', true],
  ]);
});

it('the security requirements list every accepted combination of keys', () => {
  expect(loans.security).toEqual([{}, { longTermKey: [] }]);
  const lend = operationOf('post', '/v1/shelves/{shelf}/loans');
  expect(lend.security).toEqual([{ deskKey: [] }, { deskKey: [], longTermKey: [] }]);
  expect(Object.keys(openapi.components?.securitySchemes ?? {})).toEqual(['deskKey', 'longTermKey']);
});

it('a paginated operation has links that use the cursors in the response to get the next and previous page', () => {
  const links = loans.responses?.['200']?.links ?? {};
  const parametersOfLinks = Object.values(links).map(({ operationId, parameters }) => [operationId, parameters]);
  expect(parametersOfLinks).toEqual(
    ['next', 'previous'].map((which) => [
      'listLoans',
      { 'path.shelf': '$request.path.shelf', 'query.page_cursor': `$response.body#/page/${which}_cursor` },
    ]),
  );
  expect(loans.responses?.['400']).not.toHaveProperty('links');
});

it('request schemas allow unknown fields, response schemas forbid them, and unions have a discriminator', () => {
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

it('every example response is valid against the schema of the response', () => {
  let count = 0;
  for (const operation of operations)
    for (const response of Object.values(operation.responses ?? {})) {
      const content = response.content?.['application/json'];
      for (const [name, value] of Object.entries(examplesOf(content ?? {}))) {
        count++;
        expect(ajv.validate(toInternalRefs(content?.schema), value), `${name}: ${ajv.errorsText()}`).toBe(true);
      }
    }
  expect(count).toBe(8);
});

it('every reference in the OpenAPI document resolves', () => {
  for (const [, pointer = ''] of JSON.stringify(openapi).matchAll(/"\$ref":"#\/([^"]*)"/g))
    expect(
      pointer.split('/').reduce<Json | undefined>((at, part) => at?.[part], openapi),
      pointer,
    ).toBeDefined();
});
