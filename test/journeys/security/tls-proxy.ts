import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { connect, createServer, type TLSSocket } from 'node:tls';
import type { CertificateFiles } from '@playline/infra/local';

export type TlsProxy = Awaited<ReturnType<typeof openTlsProxy>>;

const HOST = '127.0.0.1';

function contextOf({ certificate, key }: CertificateFiles): { cert: Buffer; key: Buffer } {
  return { cert: readFileSync(certificate), key: readFileSync(key) };
}

/** Opens a TLS proxy for a store on the loopback interface, with a certificate that the test can change. */
export async function openTlsProxy(files: CertificateFiles) {
  let attempts = 0;
  let target: { port: number; caFile: string } | null = null;
  const open = new Set<TLSSocket>();
  const track = (socket: TLSSocket) => {
    open.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => open.delete(socket));
  };
  const server = createServer(contextOf(files), (client) => {
    track(client);
    if (target === null) return client.destroy();
    const upstream = connect({ host: HOST, port: target.port, ca: readFileSync(target.caFile) });
    track(upstream);
    client.once('close', () => upstream.destroy());
    upstream.once('close', () => client.destroy());
    client.pipe(upstream).pipe(client);
  });
  server.on('connection', () => attempts++);
  server.on('tlsClientError', () => {});
  server.listen(0, HOST);
  await once(server, 'listening');
  const closeAll = () => {
    for (const socket of open) socket.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    get attempts(): number {
      return attempts;
    },
    /** Uses the certificate for new connections, and closes existing connections. */
    useCertificate(next: CertificateFiles) {
      server.setSecureContext(contextOf(next));
      closeAll();
    },
    forwardTo(next: { port: number; caFile: string }) {
      target = next;
    },
    close: async () => {
      closeAll();
      server.close();
      await once(server, 'close');
    },
  };
}
