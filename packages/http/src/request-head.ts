import type { IncomingMessage } from 'node:http';
import { PublicError } from '@playline/errors';

const HOST = 'host';
/** A name or an IPv4 address (RFC 3986, 3.2.2), or an IPv6 address, and a port; an empty one too, as RFC 9110 (7.2) allows. */
const HOST_VALUE = /^(?:[\w.~!$&'()*+,;=%-]*|\[[\da-f:.]+\])(?::\d*)?$/i;
const SLASH = '/';
const SLASHES = /\/{2,}/g;
/** RFC 9112, 3.2.2: a server must accept this form, although only proxies should get it. */
const ABSOLUTE_FORM = /^https?:\/\/[^/?#]*/i;

/**
 * Checks what Node does not check of version, path and host: RFC 9112, 2.3 and 3.2. If a request names two hosts, a
 * proxy before us may have read it as one for another host.
 * @returns null when nothing is wrong
 */
export function faultOfHead(request: IncomingMessage): PublicError | null {
  // Node accepts 0.9 and 2.0, but a caller that writes such a line does not speak those versions.
  if (request.httpVersionMajor !== 1) return invalid('The version of HTTP must be 1.1 or 1.0.');
  if (request.url?.includes('#')) return invalid('The path must not have a fragment.');
  const { host } = request.headers;
  // HTTP/1.0 knows no such header.
  if (host === undefined) return request.httpVersionMinor === 0 ? null : invalid('The host header is missing.', HOST);
  if (isRepeated(request.rawHeaders, HOST)) return invalid('The host header is there more than once.', HOST);
  return HOST_VALUE.test(host) ? null : invalid('The host header is not a name or an address.', HOST);
}

/** Path and query of the request, without scheme and host: those are meant for proxies. */
export function targetOf(request: IncomingMessage): string {
  const url = request.url ?? '';
  if (url.startsWith(SLASH)) return url;
  const rest = url.replace(ABSOLUTE_FORM, '');
  return rest === url || rest.startsWith(SLASH) ? rest : SLASH + rest;
}

/**
 * The path with one slash where it has several, and without one at its end: a base address that ends in a slash makes
 * such paths. No operation has an empty segment, so they mean nothing else.
 */
export function toUsualPath(path: string): string {
  if (!path.endsWith(SLASH) && !path.includes('//')) return path;
  const single = path.replace(SLASHES, SLASH);
  return single.length > 1 && single.endsWith(SLASH) ? single.slice(0, -1) : single;
}

/** Node keeps the first value only, so the raw header lines are searched: names and values in turn. */
function isRepeated(lines: readonly string[], name: string): boolean {
  let times = 0;
  for (let at = 0; at < lines.length; at += 2) {
    const line = lines[at] as string;
    if (line.length === name.length && line.toLowerCase() === name && ++times > 1) return true;
  }
  return false;
}

function invalid(message: string, header?: string): PublicError {
  return new PublicError('VALIDATION_ERROR', { message, ...(header && { details: { header } }) });
}
