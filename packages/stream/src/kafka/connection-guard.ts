import type { Base, Connection } from '@platformatic/kafka';

/**
 * Minds every connection of a client of @platformatic/kafka 2.12:
 * - The client listens for the first error of a connection only; a second one, such as a socket that breaks while a login
 *   is refused, would end the process as an uncaught fault.
 * - A connection that the broker closed keeps its timer for the next login (`connections.max.reauth.ms`), which then
 *   writes to a dead socket and takes the connection's successor out of the pool. Closing ends the timer.
 */
export function guardConnections(client: Base, onFault?: (fault: unknown) => void): void {
  client.connections.on('connecting', ({ connection }: { connection: Connection }) => {
    connection.on('error', (fault) => onFault?.(fault));
    connection.once('close', () => connection.close(() => {}));
  });
}
