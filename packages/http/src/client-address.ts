import type { IncomingMessage } from 'node:http';
import { isIPv4, isIPv6 } from 'node:net';

/** The address that a request is counted under; '' when the connection is gone. */
export type ClientAddressOf = (request: IncomingMessage) => string;

/**
 * Builds the reading of client addresses. Each trusted proxy has appended the address that it was called from, so with
 * n of them the n-th entry of `X-Forwarded-For` from the right is the client; what stands further left is the client's
 * own word. An entry that is no address leaves the connection's.
 */
export function createClientAddress(trustedProxies: number): ClientAddressOf {
  return ({ headers, socket }) => {
    const own = toNetwork(socket.remoteAddress ?? '') ?? '';
    if (trustedProxies === 0) return own;
    const forwarded = String(headers['x-forwarded-for'] ?? '').split(',');
    const entry = forwarded[Math.max(0, forwarded.length - trustedProxies)] ?? '';
    return toNetwork(withoutPort(entry.trim())) ?? own;
  };
}

/**
 * What one customer of a network has: an IPv4 address, or the first 64 bits of an IPv6 address, behind which one device
 * has all addresses it likes. Null when it is no address.
 */
export function toNetwork(address: string): string | null {
  if (isIPv4(address)) return address;
  const bare = address.replace(/%.*$/, '');
  if (!isIPv6(bare)) return null;
  const mapped = /^::ffff:([\d.]+)$/i.exec(bare)?.[1];
  if (mapped !== undefined) return mapped;
  // An IPv4 tail is the last 32 bits: two groups that no network part reaches.
  const groups = bare.replace(/[\d.]+\.[\d.]+$/, '0:0');
  const [head = '', tail] = groups.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => '0');
  const network = [...left, ...zeros, ...right].slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16));
  return `${network.join(':')}::/64`;
}

/** Some proxies write the port too: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
function withoutPort(entry: string): string {
  return /^\[(.*)\](?::\d+)?$/.exec(entry)?.[1] ?? /^([\d.]+):\d+$/.exec(entry)?.[1] ?? entry;
}
