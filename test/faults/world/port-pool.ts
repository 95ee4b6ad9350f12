import { join } from 'node:path';
import { claimPorts, placesOf } from '@playline/infra/local';

/** Ports that nothing else takes while they are not listened on. */
export interface PortPool {
  take(): number;
  giveBack(port: number): void;
  close(): void;
}

/** Four wires, and two for each of a dozen processes. */
const PORTS = 36;

/**
 * Ports of a block that this world holds, below those that the system hands to outgoing connections: a port of those may
 * be taken in the moment in which a store is away, or a client may even connect to itself there.
 */
export async function openPortPool(folder: string): Promise<PortPool> {
  const names = Array.from({ length: PORTS }, (_, index) => `faults-${index}`);
  const { ports, guard } = await claimPorts(names, { places: placesOf(join(folder, 'ports')), environment: {} });
  const free = Object.values(ports);
  return {
    take: () => {
      const port = free.shift();
      if (port === undefined) throw new Error(`all ${PORTS} ports of the world are taken`);
      return port;
    },
    giveBack: (port) => void free.push(port),
    close: () => guard.close(),
  };
}
