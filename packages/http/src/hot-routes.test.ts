import { afterEach, expect, it } from 'vitest';
import { createHttpApp, type Route } from './app.ts';
import { type HttpServer, openHttpServer } from './server.ts';

const servers: HttpServer[] = [];
afterEach(() => Promise.all(servers.splice(0).map((server) => server.close())));

/** A server whose routes say what they were called with. */
async function open(hot: boolean): Promise<string> {
  const toRoute = (path: string): Route => ({
    method: 'GET',
    path,
    hot,
    handle: (exchange, params) => exchange.answer(200, JSON.stringify({ path, params })),
  });
  const app = createHttpApp({
    routes: ['/v1/chains/:chain/history', '/v1/chains/:chain/tokens/:address', '/v1/all'].map(toRoute),
    link: () => 'https://docs.test',
  });
  const server = await openHttpServer({ app, host: '127.0.0.1', port: 0 });
  servers.push(server);
  return `http://127.0.0.1:${server.port}`;
}

const PATHS = [
  ...['/v1/all', '/v1/all/', '/V1/all', '/v1/all?a=b', '/v1/chains/main/history', '/v1/chains/main/history?a=%20'],
  ...['/v1/chains/main/history/', '/v1/chains//history', '/v1/chains/main/History', '/v1/chains/a/b/history'],
  ...['/v1/chains/:chain/history', '/v1/chains/m%61in/history', '/v1/chains/%ff/history', '/v1/chains/m%2fn/history'],
  ...[
    "/v1/chains/it's/history",
    '/v1/chains/a+b/history',
    '/v1/chains/__proto__/history',
    '/v1/chains/main/tokens/0x1',
  ],
];

it.each(PATHS)('a hot route answers GET and HEAD of %s as it would behind express', async (path) => {
  const [hot, cold] = [await open(true), await open(false)];
  for (const method of ['GET', 'HEAD']) {
    const [left, right] = [await fetch(hot + path, { method }), await fetch(cold + path, { method })];
    expect(left.status).toBe(right.status);
    const withoutTrace = async (answer: Response) => (await answer.text()).replace(/"trace_id":"\w+"/, '');
    expect(await withoutTrace(left)).toBe(await withoutTrace(right));
  }
});
