/** The addresses to which the portal sends no webhooks, because owners of projects choose the URLs. */
import { BlockList } from 'node:net';
import { networkInterfaces } from 'node:os';

const IPV4 = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  // Metadata and name servers of a cloud, reachable only from its virtual machines.
  ['168.63.129.16', 32],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 3],
] as const;
/** Addresses that contain IPv4 addresses, the loopback address, private, link-local, site-local and multicast addresses. */
const IPV6 = [
  ['::', 96],
  ['2002::', 16],
  ['64:ff9b:1::', 48],
  ['fc00::', 7],
  ['fe80::', 10],
  ['fec0::', 10],
  ['ff00::', 8],
] as const;

/**
 * Returns loopback addresses, private networks, and the current addresses of this machine. Node.js checks them when it
 * connects, after resolving the host name, so a DNS server cannot return another address in between. IPv4 rules also match
 * addresses such as `::ffff:127.0.0.1`.
 */
export function createNonPublic(): BlockList {
  const blocked = new BlockList();
  const add = (address: string, prefix: number) => {
    blocked.addSubnet(address, prefix, 'ipv4');
    // The same network behind NAT64.
    blocked.addSubnet(`64:ff9b::${address}`, 96 + prefix, 'ipv6');
  };
  for (const [address, prefix] of IPV6) blocked.addSubnet(address, prefix, 'ipv6');
  for (const [address, prefix] of IPV4) add(address, prefix);
  for (const { address, family } of Object.values(networkInterfaces()).flatMap((found) => found ?? []))
    if (family === 'IPv4') add(address, 32);
    else blocked.addAddress(address, 'ipv6');
  return blocked;
}
