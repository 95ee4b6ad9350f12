import type { IncomingMessage } from 'node:http';
import { isIPv4, isIPv6 } from 'node:net';

/** Returns the address under which a request is counted; '' when the connection is gone. */
export type ClientAddressOf = (request: IncomingMessage) => string;

/**
 * Creates the function that reads client addresses. Each trusted proxy appends the address that called it. So with n
 * trusted proxies, the client is the n-th entry of `X-Forwarded-For` from the right; entries further left could be
 * invented by the client. If that entry is no address, the connection's address is used.
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
 * The part of an address that one customer of a network owns: an IPv4 address, or the first 64 bits of an IPv6 address,
 * because one device can use all addresses after those. Null when it is no address.
 */
export function toNetwork(address: string): string | null {
  if (isIPv4(address)) return address;
  const bare = address.replace(/%.*$/, '');
  if (!isIPv6(bare)) return null;
  const mapped = /^::ffff:([\d.]+)$/i.exec(bare)?.[1];
  if (mapped !== undefined) return mapped;
  // An IPv4 tail stands for the last 32 bits. It is replaced by two groups, which are not part of the network.
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
