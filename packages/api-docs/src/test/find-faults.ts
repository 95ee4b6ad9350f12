import type { Operation } from '../operation.ts';
import { allExamples, type DocsSource, errorCodesOf, examplesOfError, operationsOfError } from '../source.ts';
import { CURSOR_PLACEHOLDERS, nameIn, placeholderOf, placeholdersIn } from '../values.ts';

/** Names of form fields that are not parameters. */
const RESERVED_NAMES = ['key', 'body'];

/** Finds contradictions in a source, one line each. */
export function findFaults(source: DocsSource): string[] {
  return [
    ...source.operations.flatMap((operation) => faultsOf(operation, source)),
    ...faultsOfNames(source),
    ...faultsOfArticles(source),
  ];
}

function faultsOf(operation: Operation, source: DocsSource): string[] {
  const faults = [
    ...faultsOfParameters(operation),
    ...faultsOfPaging(operation),
    ...faultsOfKeys(operation, source),
    ...faultsOfAnswers(operation, source),
  ];
  return faults.map((fault) => `${operation.id}: ${fault}`);
}

function faultsOfParameters({ path, parameters }: Operation): string[] {
  const inPath = path.split('/').flatMap((part) => nameIn(part) ?? []);
  const described = parameters.filter((one) => one.in === 'path');
  const names = parameters.map(({ name }) => name);
  return [
    ...inPath
      .filter((name) => !described.some((one) => one.name === name))
      .map((name) => `nothing describes {${name}}`),
    ...described.filter(({ name }) => !inPath.includes(name)).map(({ name }) => `the path has no {${name}}`),
    ...described.filter(({ required }) => !required).map(({ name }) => `${name} is part of the path and not required`),
    ...repeated(names).map((name) => `two parameters are called ${name}`),
    ...names
      .filter((name) => RESERVED_NAMES.includes(name))
      .map((name) => `a field of the form is called ${name} already`),
  ];
}

function faultsOfPaging({ paging, parameters, examples }: Operation): string[] {
  const takes = (name: string) => parameters.some((one) => one.in === 'query' && one.name === name);
  if (paging !== null) return takes(paging.parameter) ? [] : [`the query takes no ${paging.parameter}`];
  const cursors: string[] = Object.values(CURSOR_PLACEHOLDERS);
  const used = placeholdersIn({ keys: [] }, examples).filter((one) => cursors.includes(one));
  return used.map((one) => `an example gives ${one}, and no answer is a page`);
}

function faultsOfKeys({ keys, examples }: Operation, source: DocsSource): string[] {
  const known = source.keys.map(({ kind }) => placeholderOf(kind));
  const taken = keys.map(({ kind }) => placeholderOf(kind));
  const given = examples.flatMap(({ request }) => Object.values(request.headers).filter((one) => one.startsWith('{{')));
  return [
    ...taken.filter((one) => !known.includes(one)).map((one) => `nothing describes the key ${one}`),
    ...[...new Set(given)].filter((one) => !known.includes(one)).map((one) => `nothing describes the key ${one}`),
  ];
}

function faultsOfAnswers({ answers, examples }: Operation, source: DocsSource): string[] {
  const codes = errorCodesOf(source);
  const statuses = answers.map(({ status }) => status);
  return [
    ...repeated(statuses).map((status) => `two answers have the status ${status}`),
    ...answers.flatMap((answer) =>
      answer.codes.filter((code) => !codes.includes(code)).map((code) => `${code} has no page`),
    ),
    ...examples
      .filter(({ answer }) => !statuses.includes(answer.status))
      .map(({ name, answer }) => `${name} is answered with ${answer.status}, which is not listed`),
  ];
}

function faultsOfNames(source: DocsSource): string[] {
  const names = [...source.operations.map(({ id }) => id), ...allExamples(source).map(({ name }) => name)];
  const codes = errorCodesOf(source).filter((code) => operationsOfError(source, code).length > 0);
  return [
    // Links within a page use these names.
    ...repeated(names).map((name) => `two operations or examples are called ${name}`),
    ...codes.filter((code) => examplesOfError(source, code).length === 0).map((code) => `${code} has no example`),
  ];
}

function faultsOfArticles({ articles, partCodes }: DocsSource): string[] {
  const names = articles.map(({ name }) => name);
  const taken = ['reference', 'errors', ...(partCodes === null ? [] : [partCodes.folder])];
  return [
    ...names.filter((name) => !/^[a-z][a-z-]*$/.test(name)).map((name) => `${name} is no part of an address`),
    ...repeated([...taken, ...names]).map((name) => `two pages are called ${name}`),
  ];
}

function repeated<T>(values: readonly T[]): T[] {
  return [...new Set(values.filter((value, index) => values.indexOf(value) !== index))];
}
