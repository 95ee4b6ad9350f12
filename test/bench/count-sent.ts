import { Agent, request } from 'node:http';

/** A POST with the smallest head that Node sends. */
export interface CountedPost {
  port: number;
  path: string;
  headers: Readonly<Record<string, string>>;
  body: Buffer;
}

/** Posts on a new connection. @returns the status, and the number of bytes sent, head and body */
export async function postCounted({
  body,
  headers,
  ...target
}: CountedPost): Promise<{ status: number; bytes: number }> {
  const fields = { 'content-type': 'application/json', 'content-length': body.length, ...headers };
  const sent = request({ ...target, agent: new Agent({ keepAlive: false }), method: 'POST', headers: fields });
  const answered = new Promise<number>((resolve, reject) => {
    sent.once('error', reject);
    sent.once('response', (answer) => answer.resume().once('end', () => resolve(answer.statusCode ?? 0)));
  });
  sent.end(body);
  return { status: await answered, bytes: sent.socket?.bytesWritten ?? Number.NaN };
}
