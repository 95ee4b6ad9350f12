import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { isIPv4, isIPv6, type Socket } from 'node:net';
import { type ErrorCode, PublicError } from '@playline/errors';
import type { Logger, Metrics } from '@playline/runtime';
import express from 'express';
import { ANSWER_MAX_MS, corsHeaders, Exchange, type HeaderList, notFound, type ServerContext } from './exchange.ts';

export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /**
   * In Express syntax. With `cors` it must be a literal path; with `hot` it may contain only fixed and named segments.
   */
  readonly path: string;
  /** Bypasses Express, which takes a fifth of the time of a small request. */
  readonly hot?: boolean;
  readonly cors?: boolean;
  handle(exchange: Exchange, params: Readonly<Record<string, string | string[]>>): void | Promise<void>;
}

export interface HttpAppOptions {
  routes: readonly Route[];
  /** For preflights; absent when no operation accepts a publishable key. */
  publishableKeyHeader?: string;
  link: (code: ErrorCode) => string;
  answerMaxMs?: number;
  onAnswer?: ServerContext['onAnswer'];
  onFault?: ServerContext['onFault'];
}

export interface HttpApp {
  readonly listener: RequestListener;
  readonly context: ServerContext;
  readonly routes: readonly Pick<Route, 'method' | 'path'>[];
  exchangeOf(socket: Socket): Exchange | undefined;
}

const NO_HEADERS: HeaderList = [];

/** On the connection, because a WeakMap took 4 % of the time of a request with one message. */
const LATEST = Symbol('latest exchange');
type Connection = Socket & { [LATEST]?: Exchange };

export function createHttpApp(options: HttpAppOptions): HttpApp {
  const nothing = () => {};
  const { routes, link, answerMaxMs = ANSWER_MAX_MS, onAnswer = nothing, onFault = nothing } = options;
  const frame: ServerContext = { link, draining: false, streams: new Set(), answerMaxMs, onAnswer, onFault };
  const cors = corsHeaders(options.publishableKeyHeader);
  const corsPaths = new Set(routes.filter((route) => route.cors).map((route) => route.path));
  const otherPaths = new Set(routes.filter((route) => !route.cors).map((route) => route.path));
  // Path prefixes under which a route matches every path.
  const wildcardPrefixes = routes.filter(({ path }) => path.includes('{*')).map(({ path }) => path.split('{*', 1)[0]!);
  // Pages can then read the 404 for a wrong path.
  const isForPages = options.publishableKeyHeader !== undefined;
  const findHot = createFindHot(routes);
  const cold = createExpressApp(routes);

  const listener = (request: IncomingMessage, response: ServerResponse) => {
    const url = targetOf(request);
    const query = url.indexOf('?');
    const rawPath = query === -1 ? url : url.slice(0, query);
    const normalised = normalisePath(rawPath);
    const keepsRaw =
      normalised === rawPath ||
      !corsPaths.has(normalised) ||
      wildcardPrefixes.some((prefix) => rawPath.startsWith(prefix));
    const path = keepsRaw ? rawPath : normalised;
    request.url = query === -1 ? path : path + url.slice(query);
    const allowsAnyOrigin = corsPaths.has(path);
    const exchange = new Exchange(frame, { request, response }, allowsAnyOrigin ? cors.response : NO_HEADERS);
    (request.socket as Connection)[LATEST] = exchange;
    const fault = validateHead(request);
    if (fault !== null) return exchange.fail(fault);
    const hot = findHot(request.method, path);
    if (hot !== null) return void run(hot.route, exchange, hot.params);
    const unmatchedHeaders = isForPages && !allowsAnyOrigin && !otherPaths.has(path) ? cors.response : NO_HEADERS;
    if (request.method !== 'OPTIONS') return cold(exchange, response, unmatchedHeaders);
    const isPreflight = unmatchedHeaders.length > 0 && request.headers['access-control-request-method'] !== undefined;
    if (allowsAnyOrigin || isPreflight) exchange.answerEmpty(204, [...unmatchedHeaders, ...cors.preflight]);
    else exchange.fail(notFound(), unmatchedHeaders);
  };
  return { listener, context: frame, routes, exchangeOf: (socket) => (socket as Connection)[LATEST] };
}

async function run(route: Route, exchange: Exchange, params: Parameters<Route['handle']>[1]): Promise<void> {
  exchange.route = route.path;
  try {
    await route.handle(exchange, params);
  } catch (error) {
    exchange.fail(error);
  }
}

/** Express for routes that are not hot. `unmatchedHeaders`: headers of the response when no route matches. */
function createExpressApp(
  routes: readonly Route[],
): (exchange: Exchange, response: ServerResponse, unmatchedHeaders: HeaderList) => void {
  const exchanges = new WeakMap<IncomingMessage, Exchange>();
  const exchangeOf = (request: express.Request) => exchanges.get(request) as Exchange;
  const app = express();
  app.disable('x-powered-by').disable('etag').set('query parser', false);
  app.enable('case sensitive routing').enable('strict routing');
  for (const route of routes) {
    const method = route.method.toLowerCase() as Lowercase<Route['method']>;
    app[method](route.path, (request, _response) => run(route, exchangeOf(request), request.params));
  }
  return (exchange, response, unmatchedHeaders) => {
    exchanges.set(exchange.request, exchange);
    // Called when no route has responded, with the router's error if there is one.
    app(exchange.request as express.Request, response as express.Response, (error?: unknown) =>
      exchange.fail(error ? toPublic(error) : notFound(), unmatchedHeaders),
    );
  };
}

function toPublic(error: unknown): unknown {
  if (!(error instanceof URIError)) return error;
  return new PublicError('VALIDATION_ERROR', { message: 'The path is not valid percent-encoding.', cause: error });
}

const NAME_MARK = ':';
/** Without percent-encoding (RFC 3986, 2.3). */
const PLAIN = /^[\w.~-]+$/;

/** Creates a function that finds the hot route of a request; null when Express must decide. */
function createFindHot(routes: readonly Route[]) {
  const hot = routes.filter((route) => route.hot);
  const isNamed = ({ path }: Route) => path.includes(NAME_MARK);
  const named = hot.filter(isNamed).map((route) => ({ route, segments: route.path.split('/') }));
  const fixed = hot.filter((route) => !isNamed(route));
  const whole = new Map(fixed.map((route) => [`${route.method} ${route.path}`, { route, params: {} }]));
  return (method: string | undefined, path: string) => {
    const found = whole.get(`${method} ${path}`);
    if (found !== undefined) return found;
    if (named.length === 0) return null;
    const given = path.split('/');
    for (const { route, segments } of named) {
      const params = route.method === method ? matchSegments(segments, given) : null;
      if (params !== null) return { route, params };
    }
    return null;
  };
}

function matchSegments(segments: readonly string[], given: readonly string[]): Record<string, string> | null {
  if (segments.length !== given.length) return null;
  const params: Record<string, string> = {};
  for (const [index, segment] of segments.entries()) {
    const text = given[index] as string;
    if (!segment.startsWith(NAME_MARK)) {
      if (segment !== text) return null;
    } else if (PLAIN.test(text)) params[segment.slice(NAME_MARK.length)] = text;
    else return null;
  }
  return params;
}

const HOST = 'host';
/** A name or address (RFC 3986, 3.2.2) and a port, which may be empty (RFC 9110, 7.2). */
const HOST_VALUE = /^(?:[\w.~!$&'()*+,;=%-]*|\[[\da-f:.]+\])(?::\d*)?$/i;
const SLASH = '/';
const SLASHES = /\/{2,}/g;
/** RFC 9112, 3.2.2: servers must accept the absolute form. */
const ABSOLUTE_FORM = /^https?:\/\/[^/?#]*/i;

/** Checks that Node omits: RFC 9112, 2.3 and 3.2. A proxy may have used a second host as the target. */
function validateHead(request: IncomingMessage): PublicError | null {
  // Node also accepts HTTP/0.9 and 2.0.
  if (request.httpVersionMajor !== 1) return invalid('The HTTP version is not 1.1 or 1.0.');
  if (request.url?.includes('#')) return invalid('The path has a fragment.');
  const { host } = request.headers;
  if (host === undefined) return request.httpVersionMinor === 0 ? null : invalid('The host header is missing.', HOST);
  if (isRepeated(request.rawHeaders, HOST)) return invalid('The host header is repeated.', HOST);
  return HOST_VALUE.test(host) ? null : invalid('The host header is not a name or an address.', HOST);
}

function targetOf(request: IncomingMessage): string {
  const url = request.url ?? '';
  if (url.startsWith(SLASH)) return url;
  const rest = url.replace(ABSOLUTE_FORM, '');
  return rest === url || rest.startsWith(SLASH) ? rest : SLASH + rest;
}

/** Removes repeated and trailing slashes, which a base URL with a trailing slash produces. */
function normalisePath(path: string): string {
  if (!path.endsWith(SLASH) && !path.includes('//')) return path;
  const single = path.replace(SLASHES, SLASH);
  return single.length > 1 && single.endsWith(SLASH) ? single.slice(0, -1) : single;
}

/** Node keeps only the first value, so the raw headers (alternating names and values) are searched. */
function isRepeated(lines: readonly string[], name: string): boolean {
  let times = 0;
  for (let at = 0; at < lines.length; at += 2) {
    const line = lines[at] as string;
    if (line.length === name.length && line.toLowerCase() === name && ++times > 1) return true;
  }
  return false;
}

function invalid(message: string, header?: string): PublicError {
  return new PublicError('VALIDATION_ERROR', { message, ...(header && { details: { header } }) });
}

/** The client address that limits apply to; '' when the connection is closed. */
export type ClientAddressOf = (request: IncomingMessage) => string;

/** With n trusted proxies, the client is the n-th entry from the right of `X-Forwarded-For`, else the connection. */
export function createClientAddress(trustedProxies: number): ClientAddressOf {
  return ({ headers, socket }) => {
    const own = toNetwork(socket.remoteAddress ?? '') ?? '';
    if (trustedProxies === 0) return own;
    const forwarded = String(headers['x-forwarded-for'] ?? '').split(',');
    const entry = forwarded[Math.max(0, forwarded.length - trustedProxies)] ?? '';
    return toNetwork(withoutPort(entry.trim())) ?? own;
  };
}

/** An IPv4 address, or the first 64 bits of an IPv6 address, usually one customer's. Null for anything else. */
export function toNetwork(address: string): string | null {
  if (isIPv4(address)) return address;
  const bare = address.replace(/%.*$/, '');
  if (!isIPv6(bare)) return null;
  const mapped = /^::ffff:([\d.]+)$/i.exec(bare)?.[1];
  if (mapped !== undefined) return mapped;
  // An IPv4 suffix is two groups, which are not part of the network.
  const groups = bare.replace(/[\d.]+\.[\d.]+$/, '0:0');
  const [head = '', tail] = groups.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => '0');
  const network = [...left, ...zeros, ...right].slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16));
  return `${network.join(':')}::/64`;
}

/** Some proxies append the port: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
function withoutPort(entry: string): string {
  return /^\[(.*)\](?::\d+)?$/.exec(entry)?.[1] ?? /^([\d.]+):\d+$/.exec(entry)?.[1] ?? entry;
}

/** From one round trip on an idle network to the longest deadline of a request. */
const DURATION_BUCKETS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/**
 * Times requests to the start of the response. Unmatched routes are `unmatched`; bytes that are not a request, `none`.
 */
export function createRequestDurations(metrics: Pick<Metrics, 'histogram'>): ServerContext['onAnswer'] {
  const durations = metrics.histogram(
    'playline_http_request_duration_seconds',
    'Time from the head of a request to the start of its response',
    { bucketsSeconds: DURATION_BUCKETS_S, labelNames: ['route', 'method', 'status'] },
  );
  // A label lookup costs more than the observation, and there are few combinations.
  const known = new Map<string, ReturnType<typeof durations.labels>>();
  return (exchange, status) => {
    const route = exchange?.route ?? 'unmatched';
    const method = exchange?.request.method ?? 'none';
    const key = `${method} ${status} ${route}`;
    let duration = known.get(key);
    if (duration === undefined) {
      duration = durations.labels(route, method, String(status));
      known.set(key, duration);
    }
    duration.observe(exchange === null ? 0 : (performance.now() - exchange.startedMs) / 1000);
  };
}

export interface FaultLogParts {
  logger: Pick<Logger, 'error'>;
  /** Calls `run` once, after one interval. */
  afterInterval?: (run: () => void) => void;
}

const INTERVAL_MS = 10_000;
/** More kinds mean that messages contain ids; further faults then share one kind. */
const KINDS_MAX = 50;
const OTHERS = 'others';
const KIND_CHARACTERS_MAX = 200;

interface UnreportedFaults {
  count: number;
  traceId: string;
  message: string;
}

/** Logs the first fault of a kind with its stack, and further faults as one line per interval with their number. */
export function createFaultLog({ logger, afterInterval = afterIntervalMs }: FaultLogParts) {
  const kinds = new Map<string, UnreportedFaults>();
  const report = (kind: string) => {
    const { count, traceId, message } = kinds.get(kind) as UnreportedFaults;
    if (count === 0) return void kinds.delete(kind);
    logger.error({ traceId, failures: count, latest: message }, 'more requests failed');
    kinds.set(kind, { count: 0, traceId, message });
    afterInterval(() => report(kind));
  };
  return ({ traceId }: Pick<Exchange, 'traceId'>, error: unknown): void => {
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
    const message = cause instanceof Error ? cause.message : String(cause);
    const type = cause instanceof Error ? cause.name : typeof cause;
    // Messages that differ in numbers only (bytes, ports, times) are of one kind.
    const kind = `${type} ${message}`.slice(0, KIND_CHARACTERS_MAX).replace(/\d+/g, '#');
    const name = kinds.has(kind) || kinds.size < KINDS_MAX ? kind : OTHERS;
    const unreported = kinds.get(name);
    if (unreported !== undefined) return void kinds.set(name, { count: unreported.count + 1, traceId, message });
    kinds.set(name, { count: 0, traceId, message });
    afterInterval(() => report(name));
    logger.error({ traceId, error: cause }, 'request failed');
  };
}

function afterIntervalMs(run: () => void): void {
  setTimeout(run, INTERVAL_MS).unref();
}
