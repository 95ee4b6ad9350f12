import type { Operation } from '../operation.ts';
import { allExamples, type DocsSource, errorCodesOf, examplesOfError, operationsOfError } from '../source.ts';
import { CURSOR_PLACEHOLDERS, nameIn, placeholderOf, placeholdersIn } from '../values.ts';

/** Names of form fields that are not parameters. */
const RESERVED_NAMES = ['key', 'body'];

/** Returns a description of each inconsistency in a source. */
export function findFaults(source: DocsSource): string[] {
  return [
    ...source.operations.flatMap((operation) => checkOperation(operation, source)),
    ...checkNames(source),
    ...checkArticles(source),
  ];
}

function checkOperation(operation: Operation, source: DocsSource): string[] {
  const faults = [
    ...checkParameters(operation),
    ...checkPaging(operation),
    ...checkKeys(operation, source),
    ...checkResponses(operation, source),
  ];
  return faults.map((fault) => `${operation.id}: ${fault}`);
}

function checkParameters({ path, parameters }: Operation): string[] {
  const inPath = path.split('/').flatMap((part) => nameIn(part) ?? []);
  const described = parameters.filter((one) => one.in === 'path');
  const names = parameters.map(({ name }) => name);
  return [
    ...inPath
      .filter((name) => !described.some((one) => one.name === name))
      .map((name) => `the parameter {${name}} is not described`),
    ...described.filter(({ name }) => !inPath.includes(name)).map(({ name }) => `the path has no {${name}}`),
    ...described.filter(({ required }) => !required).map(({ name }) => `the path parameter ${name} must be required`),
    ...duplicatesIn(names).map((name) => `two parameters are named ${name}`),
    ...names
      .filter((name) => RESERVED_NAMES.includes(name))
      .map((name) => `the parameter name ${name} is reserved for a form field`),
  ];
}

function checkPaging({ paging, parameters, examples }: Operation): string[] {
  const hasParameter = (name: string) => parameters.some((one) => one.in === 'query' && one.name === name);
  if (paging !== null) return hasParameter(paging.parameter) ? [] : [`the query has no parameter ${paging.parameter}`];
  const cursors: string[] = Object.values(CURSOR_PLACEHOLDERS);
  const used = placeholdersIn({ keys: [] }, examples).filter((one) => cursors.includes(one));
  return used.map((one) => `an example uses ${one}, but the operation is not paginated`);
}

function checkKeys({ keys, examples }: Operation, source: DocsSource): string[] {
  const described = source.keys.map(({ kind }) => placeholderOf(kind));
  const accepted = keys.map(({ kind }) => placeholderOf(kind));
  const sent = examples.flatMap(({ request }) => Object.values(request.headers).filter((one) => one.startsWith('{{')));
  const undescribed = [...new Set([...accepted, ...sent])].filter((one) => !described.includes(one));
  return undescribed.map((one) => `the source does not describe the key ${one}`);
}

function checkResponses({ responses, examples }: Operation, source: DocsSource): string[] {
  const codes = errorCodesOf(source);
  const statuses = responses.map(({ status }) => status);
  return [
    ...duplicatesIn(statuses).map((status) => `two responses have the status ${status}`),
    ...responses.flatMap((response) =>
      response.codes.filter((code) => !codes.includes(code)).map((code) => `${code} has no page`),
    ),
    ...examples
      .filter(({ response }) => !statuses.includes(response.status))
      .map(({ name, response }) => `the status ${response.status} of the example ${name} is not listed`),
  ];
}

function checkNames(source: DocsSource): string[] {
  const names = [...source.operations.map(({ id }) => id), ...allExamples(source).map(({ name }) => name)];
  const codes = errorCodesOf(source).filter((code) => operationsOfError(source, code).length > 0);
  return [
    // Names are URL fragments, so they must be unique.
    ...duplicatesIn(names).map((name) => `two operations or examples are named ${name}`),
    ...codes.filter((code) => examplesOfError(source, code).length === 0).map((code) => `${code} has no example`),
  ];
}

function checkArticles({ articles }: DocsSource): string[] {
  const names = articles.map(({ name }) => name);
  const reserved = ['reference', 'errors', 'rejections'];
  return [
    ...names.filter((name) => !/^[a-z][a-z-]*$/.test(name)).map((name) => `${name} is not a valid path segment`),
    ...duplicatesIn([...reserved, ...names]).map((name) => `two pages are named ${name}`),
  ];
}

function duplicatesIn<T>(values: readonly T[]): T[] {
  return [...new Set(values.filter((value, index) => values.indexOf(value) !== index))];
}
