import { join } from 'node:path';
import { claimPorts, stackPathsOf } from '@playline/infra/local';

/** Ports that no other process takes even while nothing listens on them. */
export type PortPool = Awaited<ReturnType<typeof openPortPool>>;

const PORTS = 36;

/** Reserves ports below the ephemeral ports, because an ephemeral port could be taken while a store is down. */
export async function openPortPool(folder: string) {
  const names = Array.from({ length: PORTS }, (_, index) => `faults-${index}`);
  const { ports, guard } = await claimPorts(names, { paths: stackPathsOf(join(folder, 'ports')), environment: {} });
  const free = Object.values(ports);
  return {
    take: () => {
      const port = free.shift();
      if (port === undefined) throw new Error(`all ${PORTS} ports of the world are taken`);
      return port;
    },
    giveBack: (port: number) => void free.push(port),
    close: () => guard.close(),
  };
}
