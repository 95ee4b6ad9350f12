import { createMetrics } from '@playline/runtime';
import { expect, it } from 'vitest';
import { createHttpApp, createRequestDurations, type Route } from './app.ts';
import { openHttpServer } from './server.ts';

it('requests are timed by declared route, method and status, never by the values in their path', async () => {
  const metrics = createMetrics('test');
  const route: Route = {
    method: 'GET',
    path: '/v1/items/:id',
    hot: true,
    handle: (exchange) => exchange.answer(200, '1'),
  };
  const onAnswer = createRequestDurations(metrics);
  const app = createHttpApp({ link: (code) => code, routes: [route], onAnswer });
  const server = await openHttpServer({ app, host: '127.0.0.1', port: 0 });
  for (const path of ['/v1/items/a', '/v1/items/b%20c', '/v1/nothing'])
    await (await fetch(`http://127.0.0.1:${server.port}${path}`)).text();
  await server.close();
  const counts = (await metrics.text()).match(/(?<=^playline_http_request_duration_seconds_count).*$/gm);
  expect(counts).toEqual([
    '{service="test",route="/v1/items/:id",method="GET",status="200"} 2',
    '{service="test",route="unmatched",method="GET",status="404"} 1',
  ]);
});
