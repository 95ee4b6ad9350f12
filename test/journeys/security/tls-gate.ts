import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { connect, createServer, type TLSSocket } from 'node:tls';
import type { CertificateFiles } from '@playline/infra/local';

export type TlsGate = Awaited<ReturnType<typeof openTlsGate>>;

const HOST = '127.0.0.1';

function contextOf({ certificate, key }: CertificateFiles): { cert: Buffer; key: Buffer } {
  return { cert: readFileSync(certificate), key: readFileSync(key) };
}

/** A TLS endpoint before one store, with the certificate that a test wants. Loopback only. */
export async function openTlsGate(files: CertificateFiles) {
  let knocks = 0;
  let target: { port: number; caFile: string } | null = null;
  const open = new Set<TLSSocket>();
  const keep = (socket: TLSSocket) => {
    open.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => open.delete(socket));
  };
  const server = createServer(contextOf(files), (near) => {
    keep(near);
    if (target === null) return near.destroy();
    const far = connect({ host: HOST, port: target.port, ca: readFileSync(target.caFile) });
    keep(far);
    near.once('close', () => far.destroy());
    far.once('close', () => near.destroy());
    near.pipe(far).pipe(near);
  });
  server.on('connection', () => knocks++);
  server.on('tlsClientError', () => {});
  server.listen(0, HOST);
  await once(server, 'listening');
  const cut = () => {
    for (const socket of open) socket.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    /** Connections since it was opened, including those that fail in the handshake. */
    get knocks(): number {
      return knocks;
    },
    /** Uses another certificate from now on, and closes existing connections. */
    show(next: CertificateFiles) {
      server.setSecureContext(contextOf(next));
      cut();
    },
    leadTo(next: { port: number; caFile: string }) {
      target = next;
    },
    close: async () => {
      cut();
      server.close();
      await once(server, 'close');
    },
  };
}
