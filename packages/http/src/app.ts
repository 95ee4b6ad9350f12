import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type ErrorCode, PublicError } from '@playline/errors';
import express from 'express';
import { corsHeaders } from './cors.ts';
import { Exchange, type Frame, type HeaderList, notFound } from './exchange.ts';
import { createFindHot } from './hot-routes.ts';
import { faultOfHead, targetOf, toUsualPath } from './request-head.ts';
import { ANSWER_MAX_MS } from './slow-callers.ts';

/** One operation of an interface. */
export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Path as Express writes it. With `cors` it must be exact; with `hot` it may have only fixed and named segments. */
  readonly path: string;
  /**
   * Handled before Express, which would cost a fifth of a small request. A path written in an unusual form still goes
   * through Express.
   */
  readonly hot?: boolean;
  /** True for operations that take a publishable key: browsers of any origin may call them. */
  readonly cors?: boolean;
  /** Answers the exchange. What it throws becomes an envelope. */
  handle(exchange: Exchange, params: Readonly<Record<string, string | string[]>>): void | Promise<void>;
}

export interface HttpAppOptions {
  routes: readonly Route[];
  /** Name of the header with the publishable key, for preflights; absent where no operation takes one. */
  publishableKeyHeader?: string;
  link: (code: ErrorCode) => string;
  answerMaxMs?: number;
  onAnswer?: Frame['onAnswer'];
  onFault?: Frame['onFault'];
}

/** What a server does, without its port. */
export interface HttpApp {
  readonly listener: RequestListener;
  readonly frame: Frame;
  /** What it answers, for those who describe it. */
  readonly routes: readonly Pick<Route, 'method' | 'path'>[];
  /** The latest exchange of a connection. If the connection breaks, its answer belongs to that exchange. */
  exchangeOf(socket: Socket): Exchange | undefined;
}

const NO_HEADERS: HeaderList = [];

/** Kept on the connection itself: a WeakMap of connections took 4 % of a request with one message. */
const LATEST = Symbol('latest exchange');
type Connection = Socket & { [LATEST]?: Exchange };

/** Combines hot routes, Express routes, CORS, and an envelope for everything else, into one request listener. */
export function createHttpApp(options: HttpAppOptions): HttpApp {
  const nothing = () => {};
  const { routes, link, answerMaxMs = ANSWER_MAX_MS, onAnswer = nothing, onFault = nothing } = options;
  const frame: Frame = { link, draining: false, streams: new Set(), answerMaxMs, onAnswer, onFault };
  const cors = corsHeaders(options.publishableKeyHeader);
  const corsPaths = new Set(routes.filter((route) => route.cors).map((route) => route.path));
  const otherPaths = new Set(routes.filter((route) => !route.cors).map((route) => route.path));
  // Below these a route answers every path itself.
  const ownFolders = routes.filter(({ path }) => path.includes('{*')).map(({ path }) => path.split('{*', 1)[0]!);
  // A page must be able to read that its path is wrong, where pages may call the service at all.
  const isForPages = options.publishableKeyHeader !== undefined;
  const findHot = createFindHot(routes);
  const cold = createExpressApp(routes);

  const listener = (request: IncomingMessage, response: ServerResponse) => {
    const url = targetOf(request);
    const query = url.indexOf('?');
    const given = query === -1 ? url : url.slice(0, query);
    const usual = toUsualPath(given);
    const isUsual = usual === given || !corsPaths.has(usual) || ownFolders.some((folder) => given.startsWith(folder));
    const path = isUsual ? given : usual;
    // So that everything that reads it next sees the same: the router, and operations with a query.
    request.url = query === -1 ? path : path + url.slice(query);
    const allowsAnyOrigin = corsPaths.has(path);
    const exchange = new Exchange(frame, { request, response }, allowsAnyOrigin ? cors.answer : NO_HEADERS);
    (request.socket as Connection)[LATEST] = exchange;
    const fault = faultOfHead(request);
    if (fault !== null) return exchange.fail(fault);
    const hot = findHot(request.method, path);
    if (hot !== null) return void run(hot.route, exchange, hot.params);
    const ofUnknown = isForPages && !allowsAnyOrigin && !otherPaths.has(path) ? cors.answer : NO_HEADERS;
    // Express would answer OPTIONS by itself, with a body that is no envelope.
    if (request.method !== 'OPTIONS') return cold(exchange, response, ofUnknown);
    const isPreflight = ofUnknown.length > 0 && request.headers['access-control-request-method'] !== undefined;
    if (allowsAnyOrigin || isPreflight) exchange.answerEmpty(204, [...ofUnknown, ...cors.preflight]);
    else exchange.fail(notFound(), ofUnknown);
  };
  return { listener, frame, routes, exchangeOf: (socket) => (socket as Connection)[LATEST] };
}

async function run(route: Route, exchange: Exchange, params: Parameters<Route['handle']>[1]): Promise<void> {
  try {
    await route.handle(exchange, params);
  } catch (error) {
    exchange.fail(error);
  }
}

/**
 * Express for every route that is not hot. From its own request it finds the exchange. `ofUnknown` are headers of the
 * answer where no route matches.
 */
function createExpressApp(
  routes: readonly Route[],
): (exchange: Exchange, response: ServerResponse, ofUnknown: HeaderList) => void {
  const exchanges = new WeakMap<IncomingMessage, Exchange>();
  const exchangeOf = (request: express.Request) => exchanges.get(request) as Exchange;
  const app = express();
  app.disable('x-powered-by').disable('etag').set('query parser', false);
  app.enable('case sensitive routing').enable('strict routing');
  for (const route of routes) {
    const method = route.method.toLowerCase() as Lowercase<Route['method']>;
    app[method](route.path, (request, _response) => run(route, exchangeOf(request), request.params));
  }
  return (exchange, response, ofUnknown) => {
    exchanges.set(exchange.request, exchange);
    // Called when no route has answered: with the router's own fault, or without one. Our routes never throw into it.
    app(exchange.request as express.Request, response as express.Response, (error?: unknown) =>
      exchange.fail(error ? toPublic(error) : notFound(), ofUnknown),
    );
  };
}

/** A path that is not valid percent-encoding is the caller's mistake; the router reports it as a URIError. */
function toPublic(error: unknown): unknown {
  if (!(error instanceof URIError)) return error;
  return new PublicError('VALIDATION_ERROR', { message: 'The path is not valid percent-encoding.', cause: error });
}
