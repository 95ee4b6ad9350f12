/** The addresses to which the portal sends no webhooks, because owners of projects choose the URLs. */
import { BlockList } from 'node:net';

const IPV4 = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 3],
] as const;
/** The unspecified and the loopback address, private, link-local, site-local and multicast addresses. */
const IPV6 = [
  ['::', 127],
  ['fc00::', 7],
  ['fe80::', 10],
  ['fec0::', 10],
  ['ff00::', 8],
] as const;

/**
 * Addresses of this machine and of private networks. Node.js checks it when it connects, after resolving the host name,
 * so a DNS server cannot return another address in between. IPv4 rules also match addresses such as `::ffff:127.0.0.1`.
 */
export const NON_PUBLIC = new BlockList();
for (const [address, prefix] of IPV6) NON_PUBLIC.addSubnet(address, prefix, 'ipv6');
for (const [address, prefix] of IPV4) {
  NON_PUBLIC.addSubnet(address, prefix, 'ipv4');
  // The same network behind NAT64.
  NON_PUBLIC.addSubnet(`64:ff9b::${address}`, 96 + prefix, 'ipv6');
}
