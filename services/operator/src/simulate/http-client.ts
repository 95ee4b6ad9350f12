import http from 'node:http';
import https from 'node:https';

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** Cuts the connection after this time, with or without an answer. */
  readonly cutAfterMs: number;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly text: string;
}

/** Posts over keep-alive connections with Node's own client, so that a run uses little CPU compared with the stack. */
export interface HttpClient {
  /** @throws Error without a complete answer: refused, reset, cut or timed out */
  send(request: HttpRequest): Promise<HttpAnswer>;
  close(): void;
}

/** @param origin `http://host:port` or `https://host:port` of the service */
export function openHttpClient(origin: string): HttpClient {
  const { protocol, hostname, port } = new URL(origin);
  const vendor = protocol === 'https:' ? https : http;
  const agent = new vendor.Agent({ keepAlive: true });

  const send = (request: HttpRequest): Promise<HttpAnswer> =>
    new Promise((resolve, reject) => {
      const { method, path, headers, body, cutAfterMs } = request;
      const lengths = { ...headers, 'content-length': String(body.length) };
      const sent = vendor.request({ hostname, port, method, path, headers: lengths, agent });
      const timer = setTimeout(() => sent.destroy(new Error(`no answer within ${cutAfterMs} ms`)), cutAfterMs);
      const fail = (error: Error) => {
        clearTimeout(timer);
        reject(error);
      };
      sent.on('error', fail);
      sent.on('response', (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', fail);
        response.on('end', () => {
          clearTimeout(timer);
          const text = Buffer.concat(chunks).toString();
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
        });
      });
      sent.end(body);
    });
  return { send, close: () => agent.destroy() };
}
