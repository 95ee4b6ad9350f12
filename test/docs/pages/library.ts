import type { IncomingHttpHeaders } from 'node:http';
import { createDocsRoutes } from '@playline/api-docs';
import { PublicError } from '@playline/errors';
import { createHttpApp, openHttpServer, type Route } from '@playline/http';
import { onTestFinished } from 'vitest';
import { createLibrarySource } from '../../../packages/api-docs/src/test/library.ts';

export interface ReceivedRequest {
  readonly method: string;
  readonly target: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export type Library = Awaited<ReturnType<typeof openLibrary>>;

interface State {
  readonly received: ReceivedRequest[];
  /** Number of the page in the next response. Its cursors contain the adjacent numbers. */
  pageNumber: number;
  isFailing: boolean;
}

/** Opens a service with features that the gateway lacks: path parameters, bounds, cursors and optional keys. */
export async function openLibrary() {
  const library: State = { received: [], pageNumber: 7, isFailing: false };
  const app = createHttpApp({
    routes: [...createLibraryRoutes(library), ...createDocsRoutes(() => createLibrarySource())],
    publishableKeyHeader: 'x-desk-key',
    link: (code) => `/docs/errors/${code}`,
  });
  const server = await openHttpServer({ app, host: '127.0.0.1', port: 0 });
  onTestFinished(server.close);
  return Object.assign(library, { url: `http://127.0.0.1:${server.port}` });
}

function createLibraryRoutes(library: State): Route[] {
  const route = (method: Route['method'], path: string): Route => ({
    method,
    path,
    handle: async (exchange) => {
      const { url = '', headers } = exchange.request;
      const chunks = await exchange.request.toArray();
      library.received.push({ method, target: url, headers, body: Buffer.concat(chunks).toString() });
      if (library.isFailing) throw new PublicError('VALIDATION_ERROR', { message: 'Invalid.', details: null });
      const page = { previous_cursor: `at-${library.pageNumber - 1}`, next_cursor: `at-${library.pageNumber + 1}` };
      exchange.answer(200, JSON.stringify({ result: [], page }));
    },
  });
  return [
    route('GET', '/v1/shelves/:shelf/books/:isbn'),
    route('GET', '/v1/shelves/:shelf/loans'),
    route('POST', '/v1/shelves/:shelf/loans'),
  ];
}
