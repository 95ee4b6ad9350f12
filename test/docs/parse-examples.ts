import type { DocumentedRequest } from './gateways.ts';

export interface DocumentedExample {
  request: DocumentedRequest;
  status: number;
  body: unknown;
}

const ENTITIES: Record<string, string> = { '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'", '&amp;': '&' };
const toPlain = (markup: string) =>
  markup.replace(/<[^>]*>/g, '').replace(/&(?:lt|gt|quot|amp|#39);/g, (entity) => ENTITIES[entity] ?? '');

export function examplesInPage(page: string): DocumentedExample[] {
  const blocks = [...page.matchAll(/<pre [^>]*><code>(.*?)<\/code><\/pre>/gs)].map(([, text = '']) => toPlain(text));
  return inPairs(blocks);
}

export function examplesInText(text: string): DocumentedExample[] {
  return inPairs([...text.matchAll(/```(?:sh|http)\n(.*?)\n```/gs)].map(([, block = '']) => block));
}

interface CollectionItem {
  item?: CollectionItem[];
  request?: { method: string; url: { raw: string }; header: { key: string; value: string }[]; body?: { raw: string } };
  response?: { code: number; body: string }[];
}
export interface Collection extends CollectionItem {
  variable: { key: string; value: string }[];
}

export function examplesInCollection({ item = [], variable }: Collection): DocumentedExample[] {
  const baseUrl = variable.find(({ key }) => key === 'baseUrl')?.value ?? '';
  return item.flatMap((one) => examplesInItem(one, baseUrl));
}

function examplesInItem({ item = [], request, response = [] }: CollectionItem, baseUrl: string): DocumentedExample[] {
  const inner = item.flatMap((one) => examplesInItem(one, baseUrl));
  if (request === undefined) return inner;
  const { method, url, header, body } = request;
  const headers = Object.fromEntries(header.map(({ key, value }) => [key, value]));
  const [answer] = response;
  const shown = { method, address: url.raw.replace('{{baseUrl}}', baseUrl), headers, body: body?.raw ?? null };
  return [{ request: shown, status: answer?.code ?? 0, body: answer?.body ? JSON.parse(answer.body) : null }, ...inner];
}

function inPairs(blocks: readonly string[]): DocumentedExample[] {
  return blocks.flatMap((command, index) => {
    if (index % 2 === 1) return [];
    const [head = '', body] = (blocks[index + 1] ?? '').split('\n\n');
    const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1]);
    return [{ request: fromCommand(command), status, body: body === undefined ? null : JSON.parse(body) }];
  });
}

function fromCommand(block: string): DocumentedRequest {
  // Assignments of new ids and times precede the command.
  const command = block.slice(block.search(/^curl /m));
  const args = [...command.matchAll(/(?:'[^']*'|"[^"]*"|\\'|[^\s'"\\])+/g)].map(([word]) =>
    word.replace(/'([^']*)'|"([^"]*)"|\\(')/g, (_match, single, double, escaped) =>
      double === undefined ? (single ?? escaped) : withPlaceholders(double),
    ),
  );
  const [program, , , method = '', address = '', ...rest] = args;
  if (program !== 'curl') throw new Error(`not a curl command: ${command}`);
  const request: DocumentedRequest = { method, address, headers: {}, body: null };
  for (let index = 0; index < rest.length; index += 2) {
    const value = rest[index + 1] ?? '';
    if (rest[index] === '--data-binary') request.body = value;
    const [name = '', ...parts] = value.split(': ');
    if (rest[index] === '-H') request.headers[name] = parts.join(': ');
  }
  return request;
}

/** Replaces shell variables with placeholders: `$SECRET_KEY` becomes `{{secretKey}}`. */
function withPlaceholders(text: string): string {
  const toCamel = (name: string) =>
    name.toLowerCase().replace(/_(.)/g, (_, character: string) => character.toUpperCase());
  return text.replace(/\$([A-Z_]+)\d?/g, (_, name: string) => `{{${toCamel(name)}}}`);
}

/** Replaces the ids and times that are different in each request. */
export const withoutFreshValues = (text: string): string =>
  text
    .replaceAll(/("messageId": ?")([0-9a-f-]{36}|\{\{id\}\}|\{\{\$guid\}\})"/g, '$1id"')
    .replaceAll(/("eventTimestamp": ?")(20(?!01)[^"]*|\{\{now\}\}|\{\{\$isoTimestamp\}\})"/g, '$1time"')
    .replaceAll(/("trace_id": ?")[0-9a-f]{32}"/g, '$1trace"');
