import type { Example, ExampleRequest } from '../operation.ts';
import { placeholdersIn } from '../placeholders.ts';
import { allExamples, type DocsSource } from '../source.ts';

const SCHEMA = 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json';

/**
 * Creates a collection for Postman, Bruno and others that can import it: a folder for each operation, a request for
 * each example.
 */
export function toCollection(source: DocsSource): Record<string, unknown> {
  const { title, publicUrl, operations, nowhere } = source;
  const variable = (key: string, value: string) => ({ key, value, type: 'string' });
  return {
    info: {
      name: title,
      description: `${toKeyWords(source)}Errors are explained at ${publicUrl}/docs.`,
      schema: SCHEMA,
    },
    variable: [
      variable('baseUrl', publicUrl),
      ...placeholdersIn(source, allExamples(source)).map((one) => variable(one.replaceAll(/[{}]/g, ''), '')),
    ],
    item: [
      ...operations.map(({ summary, description, examples }) => ({
        name: summary,
        description: description.join('\n\n'),
        item: examples.filter(isUsual).map(toItem),
      })),
      { name: 'No operation', item: nowhere.map(toItem) },
    ],
  };
}

const COUNTS = ['', ' ', ' two ', ' three ', ' four '];

/** The first thing that a reader must do: set the keys. */
function toKeyWords({ keys }: DocsSource): string {
  if (keys.length === 0) return '';
  const count = COUNTS[keys.length] ?? ' ';
  return `Set the${count}key${keys.length === 1 ? '' : 's'} in the variables of the collection. `;
}

/** False for examples of situations that a reader cannot bring about, such as a service that has lost its stores. */
const isUsual = ({ situation }: Example): boolean => situation === undefined;

function toItem({ title, request, answer }: Example) {
  const sent = toRequest(request);
  const body = answer.body === null ? '' : JSON.stringify(answer.body, null, 2);
  const response = {
    name: `Answer ${answer.status}`,
    originalRequest: sent,
    code: answer.status,
    header: toHeaders(answer.headers),
    body,
  };
  return { name: title, request: sent, response: [response] };
}

/** Placeholders need no change: they are already spelled as variables of this format. */
function toRequest({ method, target, headers, body }: ExampleRequest) {
  const [path = '', query] = target.split('?');
  return {
    method,
    header: toHeaders(headers),
    ...(body === null ? {} : { body: { mode: 'raw', raw: body, options: { raw: { language: 'json' } } } }),
    url: {
      raw: `{{baseUrl}}${target}`,
      host: ['{{baseUrl}}'],
      path: path.split('/').slice(1),
      ...(query === undefined
        ? {}
        : { query: [...new URLSearchParams(query)].map(([key, value]) => ({ key, value })) }),
    },
  };
}

const toHeaders = (headers: Readonly<Record<string, string>>) =>
  Object.entries(headers).map(([key, value]) => ({ key, value }));
