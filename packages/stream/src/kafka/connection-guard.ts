import type { Base, Broker, Connection } from '@platformatic/kafka';
import { createConnectGate } from '@playline/errors';

type GetConnection = (broker: Broker, callback: (fault: Error | null, connection?: Connection) => void) => void;

/**
 * Minds every connection of a client of @platformatic/kafka 2.12:
 * - The client listens for the first error of a connection only; a second one, such as a socket that breaks while a login
 *   is refused, would end the process as an uncaught fault.
 * - A connection that the broker closed keeps its timer for the next login (`connections.max.reauth.ms`), which then
 *   writes to a dead socket and takes the connection's successor out of the pool. Closing ends the timer.
 * - Every question that fails connects again at once: a broker that refuses us is left alone for a while instead.
 * @param onFault told of every fault of a connection
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
