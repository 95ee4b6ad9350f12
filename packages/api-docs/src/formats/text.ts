import type { Example, ExampleResponse, Operation } from '../operation.ts';
import type { DocsSource } from '../source.ts';
import { isPlaceholder, splitAtPlaceholders, toShellVariable } from '../values.ts';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Replaces the ids and times in the body of an example, so that a reader can send it more than once. */
export function toFreshBody(
  example: Example,
  operations: readonly Operation[],
  fresh: { readonly id: (value: string) => string; readonly time: () => string },
): string | null {
  const fields = operations.find(({ examples }) => examples.includes(example))?.body?.refreshedFields;
  const { body } = example.request;
  if (body === null || fields == null) return body;
  return body.replaceAll(/"(\w+)": "([^"]*)"/g, (member, name: string, value: string) => {
    if (fields.ids.includes(name) && UUID.test(value)) return `"${name}": "${fresh.id(value)}"`;
    if (!fields.times.includes(name) || example.fixedFields?.includes(name)) return member;
    return `"${name}": "${fresh.time()}"`;
  });
}

const NEW_ID = '$(cat /proc/sys/kernel/random/uuid 2>/dev/null || uuidgen)';
const NOW = '$(date -u +%Y-%m-%dT%H:%M:%SZ)';

/** Formats the request as a curl command, which creates new ids and times whenever it runs. */
export function toCommand(example: Example, { publicUrl, operations }: CommandSource): string {
  const { method, target, headers, body } = example.request;
  const variables = new Map<string, string>();
  const use = (name: string, value: string) => {
    variables.set(name, value);
    return `\0$${name}\0`;
  };
  const ids: string[] = [];
  const fresh = toFreshBody(example, operations, {
    id: (value) => {
      if (!ids.includes(value)) ids.push(value);
      return use(`ID${ids.indexOf(value) + 1}`, NEW_ID);
    },
    time: () => use('NOW', NOW),
  });
  const lines = [
    `curl -i -X ${method} ${toAddress(publicUrl + target)}`,
    ...Object.entries(headers).map(([name, value]) => `-H ${toHeader(name, value)}`),
    // The shell joins the quoted parts and the variables.
    ...(body === null ? [] : [`--data-binary ${quote(fresh ?? '').replaceAll(/\0(\$\w+)\0/g, `'"$1"'`)}`]),
  ];
  return [...[...variables].map(([name, value]) => `${name}=${value}`), lines.join(' \\\n  ')].join('\n');
}

export type CommandSource = Pick<DocsSource, 'publicUrl' | 'operations'>;

/** Formats the response as HTTP text with an indented body. */
export function toResponseText({ status, headers, body }: ExampleResponse): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  const text = body === null ? [] : ['', JSON.stringify(body, null, 2)];
  return [`HTTP/1.1 ${status}`, ...lines, ...text].join('\n');
}

/** Quotes an address. Shells join adjacent quoted strings and variables into one argument. */
function toAddress(address: string): string {
  const parts = splitAtPlaceholders(address).map((part, index) => {
    if (index % 2 === 1) return `"${toShellVariable(part)}"`;
    return part === '' ? '' : quote(part);
  });
  return parts.join('');
}

function toHeader(name: string, value: string): string {
  return isPlaceholder(value) ? `"${name}: ${toShellVariable(value)}"` : quote(`${name}: ${value}`);
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

const KIB_BYTES = 1024;
const MIB_BYTES = KIB_BYTES * KIB_BYTES;

/** Formats a size in the largest unit that divides it exactly: `1 MiB`, `32 KiB`, `1000 bytes`. */
export function toSizeText(bytes: number): string {
  if (bytes % MIB_BYTES === 0) return `${bytes / MIB_BYTES} MiB`;
  return bytes % KIB_BYTES === 0 ? `${bytes / KIB_BYTES} KiB` : `${bytes} bytes`;
}
