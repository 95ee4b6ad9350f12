import type { Example, ExampleResponse } from '../operation.ts';
import { isPlaceholder, splitAtPlaceholders, toShellVariable } from '../values.ts';

/** Formats the request as a curl command. */
export function toCommand({ request }: Example, publicUrl: string): string {
  const { method, target, headers, body } = request;
  const lines = [
    `curl -i -X ${method} ${toAddress(publicUrl + target)}`,
    ...Object.entries(headers).map(([name, value]) => `-H ${toHeader(name, value)}`),
    ...(body === null ? [] : [`--data-binary ${quote(body)}`]),
  ];
  return lines.join(' \\\n  ');
}

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
