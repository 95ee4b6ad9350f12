import type { IncomingMessage } from 'node:http';
import { BlockList, isIPv6 } from 'node:net';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createClientAddress, toNetwork } from './app.ts';

function read(trustedProxies: number, remoteAddress: string | undefined, forwarded?: string): string {
  const request = { headers: { 'x-forwarded-for': forwarded }, socket: { remoteAddress } };
  return createClientAddress(trustedProxies)(request as unknown as IncomingMessage);
}

it('the client address is that of the connection when no proxy is trusted, whatever the header says', () => {
  expect(read(0, '192.0.2.9', '198.51.100.1')).toBe('192.0.2.9');
  expect(read(0, '::ffff:192.0.2.9')).toBe('192.0.2.9');
});

it('the client address is what the outermost trusted proxy was called from', () => {
  const forwarded = '203.0.113.66, 198.51.100.1, 192.0.2.1';
  expect(read(1, '127.0.0.1', forwarded)).toBe('192.0.2.1');
  expect(read(2, '127.0.0.1', forwarded)).toBe('198.51.100.1');
});

it('the client address is never a place in the header that a client could move by writing more of it', () => {
  const ipv4 = fc.ipV4();
  fc.assert(
    fc.property(
      fc.array(fc.oneof(ipv4, fc.string())),
      ipv4,
      fc.array(ipv4, { maxLength: 3 }),
      (own, client, proxies) => {
        const forwarded = [...own.map((entry) => entry.replaceAll(',', '')), client, ...proxies].join(', ');
        expect(read(proxies.length + 1, '127.0.0.1', forwarded)).toBe(client);
      },
    ),
  );
});

it.each([undefined, '', 'unknown', '_hidden', '300.1.1.1', 'a,', '1.2.3.4:x'])(
  'the client address is that of the connection when the entry is %j',
  (forwarded) => expect(read(1, '192.0.2.9', forwarded)).toBe('192.0.2.9'),
);

it.each([
  ['192.0.2.1:4711', '192.0.2.1'],
  ['[2001:db8::1]:4711', '2001:db8:0:0::/64'],
  ['[2001:db8::1]', '2001:db8:0:0::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
])('the client address is read from %s', (entry, address) => expect(read(1, '127.0.0.1', entry)).toBe(address));

it('the client address is empty when the connection is gone', () => expect(read(0, undefined)).toBe(''));

it('toNetwork gives all addresses of one IPv6 network one name, which is that network', () => {
  fc.assert(
    fc.property(fc.ipV6(), (address) => {
      const network = toNetwork(address) ?? '';
      if (/^::ffff:[\d.]+$/i.test(address)) return expect(address.toLowerCase()).toBe(`::ffff:${network}`);
      const [start = '', bits] = network.split('/');
      expect([isIPv6(start), bits]).toEqual([true, '64']);
      const list = new BlockList();
      list.addSubnet(start, 64, 'ipv6');
      expect(list.check(address, 'ipv6')).toBe(true);
      expect(toNetwork(start)).toBe(network);
    }),
  );
});

it('toNetwork knows scoped and mixed spellings', () => {
  expect(toNetwork('fe80::1%eth0')).toBe('fe80:0:0:0::/64');
  expect(toNetwork('64:ff9b::192.0.2.1')).toBe('64:ff9b:0:0::/64');
  expect(toNetwork('2001:0db8:0000:0000:0000:0000:0000:0001')).toBe(toNetwork('2001:DB8::1'));
});

it('toNetwork knows what is no address', () => {
  for (const text of ['', 'localhost', '1.2.3', '::1::', '12345::']) expect(toNetwork(text)).toBeNull();
});
