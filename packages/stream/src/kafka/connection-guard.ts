import { createConnectGate } from '@playline/stores';
import type { Base, Broker, Connection } from './broker-client.ts';

type GetConnection = (broker: Broker, callback: (fault: Error | null, connection?: Connection) => void) => void;

/**
 * Works around three faults in the connections of @platformatic/kafka 2.12:
 * - The client listens only for the first error of a connection. A second one, such as a socket that breaks while a
 * login is refused, would be an uncaught exception and end the process.
 * - A connection that the broker closed keeps its timer for the next login (`connections.max.reauth.ms`). The timer
 * then writes to a dead socket and removes the new connection from the pool. Closing now stops the timer.
 * - Every failed request connects again at once. After a refusal the broker is now left alone for a while.
 * @param onFault called with every fault of a connection
 */
export function guardConnections(client: Base, onFault?: (fault: unknown) => void): void {
  const pool = client.connections;
  pool.on('connecting', ({ connection }: { connection: Connection }) => {
    connection.on('error', (fault) => onFault?.(fault));
    connection.once('close', () => connection.close(() => {}));
  });
  const gate = createConnectGate('Kafka');
  const connect = pool.get.bind(pool) as GetConnection;
  const get: GetConnection = (broker, callback) => {
    const name = `${broker?.host}:${broker?.port}`;
    const refusal = gate.refusalOf(name);
    if (refusal !== null) return queueMicrotask(() => callback(refusal));
    connect(broker, (fault, connection) => {
      gate.settled(name, fault);
      callback(fault, connection);
    });
  };
  Object.assign(pool, { get });
}
