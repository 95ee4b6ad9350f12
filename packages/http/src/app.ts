import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { isIPv4, isIPv6, type Socket } from 'node:net';
import { type ErrorCode, PublicError } from '@playline/errors';
import type { Logger, Metrics } from '@playline/runtime';
import express from 'express';
import { ANSWER_MAX_MS, corsHeaders, Exchange, type HeaderList, notFound, type ServerContext } from './exchange.ts';

export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Express syntax. With `cors` the path must be literal; with `hot` it may contain only fixed and named segments. */
  readonly path: string;
  /** Bypasses Express, which takes a fifth of the CPU time of a small request. */
  readonly hot?: boolean;
  readonly cors?: boolean;
  handle(exchange: Exchange, params: Readonly<Record<string, string | string[]>>): void | Promise<void>;
}

export interface HttpAppOptions {
  routes: readonly Route[];
  /** Allowed in preflight responses. Absent if no operation accepts a publishable key. */
  publishableKeyHeader?: string;
  link: (code: ErrorCode) => string;
  answerMaxMs?: number;
  tracing?: ServerContext['tracing'];
  onAnswer?: ServerContext['onAnswer'];
  onFailure?: ServerContext['onFailure'];
}

export interface HttpApp {
  readonly listener: RequestListener;
  readonly context: ServerContext;
  readonly routes: readonly Pick<Route, 'method' | 'path'>[];
  exchangeOf(socket: Socket): Exchange | undefined;
}

const NO_HEADERS: HeaderList = [];

/** Stored on the connection, because a WeakMap took 4 % of the time of a request with one message. */
const LATEST = Symbol('latest exchange');
type Connection = Socket & { [LATEST]?: Exchange };

export function createHttpApp(options: HttpAppOptions): HttpApp {
  const noop = () => {};
  const { routes, link, answerMaxMs = ANSWER_MAX_MS, tracing = null, onAnswer = noop, onFailure = noop } = options;
  const context: ServerContext = {
    link,
    draining: false,
    streams: new Set(),
    answerMaxMs,
    tracing,
    onAnswer,
    onFailure,
  };
  const cors = corsHeaders(options.publishableKeyHeader);
  const corsPaths = new Set(routes.filter((route) => route.cors).map((route) => route.path));
  const otherPaths = new Set(routes.filter((route) => !route.cors).map((route) => route.path));
  // Path prefixes below which a route matches every path.
  const wildcardPrefixes = routes.filter(({ path }) => path.includes('{*')).map(({ path }) => path.split('{*', 1)[0]!);
  // If true, 404 responses for unknown paths have CORS headers, so that web pages can read them.
  const acceptsWebPages = options.publishableKeyHeader !== undefined;
  const findHot = createFindHot(routes);
  const cold = createExpressApp(routes);

  const listener = (request: IncomingMessage, response: ServerResponse) => {
    const url = targetOf(request);
    const query = url.indexOf('?');
    const requestPath = query === -1 ? url : url.slice(0, query);
    const normalised = normalisePath(requestPath);
    const isPathKept =
      normalised === requestPath ||
      !corsPaths.has(normalised) ||
      wildcardPrefixes.some((prefix) => requestPath.startsWith(prefix));
    const path = isPathKept ? requestPath : normalised;
    request.url = query === -1 ? path : path + url.slice(query);
    const allowsAnyOrigin = corsPaths.has(path);
    const exchange = new Exchange(context, { request, response }, allowsAnyOrigin ? cors.response : NO_HEADERS);
    (request.socket as Connection)[LATEST] = exchange;
    const fault = validateHeaders(request);
    if (fault !== null) return exchange.fail(fault);
    const hot = findHot(request.method, path);
    if (hot !== null) return void run(hot.route, exchange, hot.params);
    const unmatchedHeaders = acceptsWebPages && !allowsAnyOrigin && !otherPaths.has(path) ? cors.response : NO_HEADERS;
    if (request.method !== 'OPTIONS') return cold(exchange, response, unmatchedHeaders);
    const isPreflight = unmatchedHeaders.length > 0 && request.headers['access-control-request-method'] !== undefined;
    if (allowsAnyOrigin || isPreflight) exchange.answerEmpty(204, [...unmatchedHeaders, ...cors.preflight]);
    else exchange.fail(notFound(), unmatchedHeaders);
  };
  return { listener, context, routes, exchangeOf: (socket) => (socket as Connection)[LATEST] };
}

async function run(route: Route, exchange: Exchange, params: Parameters<Route['handle']>[1]): Promise<void> {
  exchange.route = route.path;
  try {
    await route.handle(exchange, params);
  } catch (error) {
    exchange.fail(error);
  }
}

/** Creates the Express app for cold routes. `unmatchedHeaders` are sent if no route matches. */
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
    // Called if no route has responded, with the router's error if there was one.
    app(exchange.request as express.Request, response as express.Response, (error?: unknown) =>
      exchange.fail(error ? toPublic(error) : notFound(), unmatchedHeaders),
    );
  };
}

function toPublic(error: unknown): unknown {
  if (!(error instanceof URIError)) return error;
  return new PublicError('VALIDATION_ERROR', { message: 'The path is not valid percent-encoding.', cause: error });
}

const PARAMETER_PREFIX = ':';
/** No percent-encoding (RFC 3986, 2.3). */
const PLAIN = /^[\w.~-]+$/;

/** Creates a function that finds a request's hot route, or returns null if Express must route the request. */
function createFindHot(routes: readonly Route[]) {
  const hot = routes.filter((route) => route.hot);
  const isNamed = ({ path }: Route) => path.includes(PARAMETER_PREFIX);
  const named = hot.filter(isNamed).map((route) => ({ route, segments: route.path.split('/') }));
  const fixed = hot.filter((route) => !isNamed(route));
  const fixedRoutes = new Map(fixed.map((route) => [`${route.method} ${route.path}`, { route, params: {} }]));
  return (method: string | undefined, path: string) => {
    const found = fixedRoutes.get(`${method} ${path}`);
    if (found !== undefined) return found;
    if (named.length === 0) return null;
    const pathSegments = path.split('/');
    for (const { route, segments } of named) {
      const params = route.method === method ? matchSegments(segments, pathSegments) : null;
      if (params !== null) return { route, params };
    }
    return null;
  };
}

function matchSegments(segments: readonly string[], pathSegments: readonly string[]): Record<string, string> | null {
  if (segments.length !== pathSegments.length) return null;
  const params: Record<string, string> = {};
  for (const [index, segment] of segments.entries()) {
    const text = pathSegments[index] as string;
    if (!segment.startsWith(PARAMETER_PREFIX)) {
      if (segment !== text) return null;
    } else if (PLAIN.test(text)) params[segment.slice(PARAMETER_PREFIX.length)] = text;
    else return null;
  }
  return params;
}

const HOST = 'host';
/** A name or address (RFC 3986, 3.2.2) and a port, which may be empty (RFC 9110, 7.2). */
const HOST_VALUE = /^(?:[\w.~!$&'()*+,;=%-]*|\[[\da-f:.]+\])(?::\d*)?$/i;
const SLASH = '/';
const SLASHES = /\/{2,}/g;
/** Servers must accept the absolute form (RFC 9112, 3.2.2). */
const ABSOLUTE_FORM = /^https?:\/\/[^/?#]*/i;

/** Performs checks that Node omits (RFC 9112, 2.3 and 3.2). A proxy may have routed by a second host header. */
function validateHeaders(request: IncomingMessage): PublicError | null {
  // Node also accepts HTTP/0.9 and 2.0.
  if (request.httpVersionMajor !== 1) return invalid('The HTTP version must be 1.0 or 1.1.');
  if (request.url?.includes('#')) return invalid('The path must not contain a fragment.');
  const { host } = request.headers;
  if (host === undefined) return request.httpVersionMinor === 0 ? null : invalid('The host header is missing.', HOST);
  if (isRepeated(request.rawHeaders, HOST)) return invalid('The host header is repeated.', HOST);
  return HOST_VALUE.test(host) ? null : invalid('The host header is not a valid host name or address.', HOST);
}

function targetOf(request: IncomingMessage): string {
  const url = request.url ?? '';
  if (url.startsWith(SLASH)) return url;
  const rest = url.replace(ABSOLUTE_FORM, '');
  return rest === url || rest.startsWith(SLASH) ? rest : SLASH + rest;
}

/** Removes repeated and trailing slashes, which result from a base URL that ends with a slash. */
function normalisePath(path: string): string {
  if (!path.endsWith(SLASH) && !path.includes('//')) return path;
  const single = path.replace(SLASHES, SLASH);
  return single.length > 1 && single.endsWith(SLASH) ? single.slice(0, -1) : single;
}

/** Node retains only the first value, so the raw headers (alternating names and values) are searched. */
function isRepeated(lines: readonly string[], name: string): boolean {
  let count = 0;
  for (let at = 0; at < lines.length; at += 2) {
    const line = lines[at] as string;
    if (line.length === name.length && line.toLowerCase() === name && ++count > 1) return true;
  }
  return false;
}

function invalid(message: string, header?: string): PublicError {
  return new PublicError('VALIDATION_ERROR', { message, ...(header && { details: { header } }) });
}

/** Returns the client address to which limits apply, or '' after the connection is closed. */
export type ClientAddressOf = (request: IncomingMessage) => string;

/**
 * With n trusted proxies, the client address is the n-th `X-Forwarded-For` entry from the right, or the connection's.
 */
export function createClientAddress(trustedProxies: number): ClientAddressOf {
  return ({ headers, socket }) => {
    const connectionAddress = toNetwork(socket.remoteAddress ?? '') ?? '';
    if (trustedProxies === 0) return connectionAddress;
    const forwarded = String(headers['x-forwarded-for'] ?? '').split(',');
    const entry = forwarded[Math.max(0, forwarded.length - trustedProxies)] ?? '';
    return toNetwork(withoutPort(entry.trim())) ?? connectionAddress;
  };
}

/** Returns an IPv4 address, an IPv6 address's /64 network (usually one customer), or null for any other string. */
export function toNetwork(address: string): string | null {
  if (isIPv4(address)) return address;
  const bare = address.replace(/%.*$/, '');
  if (!isIPv6(bare)) return null;
  const mapped = /^::ffff:([\d.]+)$/i.exec(bare)?.[1];
  if (mapped !== undefined) return mapped;
  // An IPv4 suffix represents two groups outside the network prefix.
  const groups = bare.replace(/[\d.]+\.[\d.]+$/, '0:0');
  const [head = '', tail] = groups.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => '0');
  const network = [...left, ...zeros, ...right].slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16));
  return `${network.join(':')}::/64`;
}

/** Removes the port that some proxies append: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
function withoutPort(entry: string): string {
  return /^\[(.*)\](?::\d+)?$/.exec(entry)?.[1] ?? /^([\d.]+):\d+$/.exec(entry)?.[1] ?? entry;
}

/** From a round trip on an idle network to the longest request deadline. */
const DURATION_BUCKETS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Measures the time to the start of a response. The route is `unmatched` for unknown paths. */
export function createRequestDurations(metrics: Pick<Metrics, 'histogram'>): ServerContext['onAnswer'] {
  const durations = metrics.histogram(
    'playline_http_request_duration_seconds',
    "Time from a request's headers to the start of its response",
    { bucketsSeconds: DURATION_BUCKETS_S, labelNames: ['route', 'method', 'status'] },
  );
  // A label lookup costs more than the observation, and there are few label combinations.
  const durationsByLabels = new Map<string, ReturnType<typeof durations.labels>>();
  return (exchange, status) => {
    const route = exchange?.route ?? 'unmatched';
    const method = exchange?.request.method ?? 'none';
    const key = `${method} ${status} ${route}`;
    let duration = durationsByLabels.get(key);
    if (duration === undefined) {
      duration = durations.labels(route, method, String(status));
      durationsByLabels.set(key, duration);
    }
    duration.observe(exchange === null ? 0 : (performance.now() - exchange.startedMs) / 1000);
  };
}

export interface FailureLogParts {
  logger: Pick<Logger, 'error' | 'info'>;
  /** Calls `run` once after one interval. */
  afterInterval?: (run: () => void) => void;
}

const INTERVAL_MS = 1_000;
/** More causes mean that messages contain ids. All further failures then count as one cause. */
const CAUSES_MAX = 50;
const OTHERS = 'others';
const CAUSE_CHARACTERS_MAX = 200;

type FailedExchange = Pick<Exchange, 'traceId' | 'route'>;
type Fields = Readonly<Record<string, unknown>>;

/**
 * Creates a log of failed requests with at most one line per second and cause. The first fault of a cause is logged with
 * its stack. Refusals are logged without their message, which can quote the request.
 */
export function createFailureLog({ logger, afterInterval = afterIntervalMs }: FailureLogParts) {
  const logFault = createPacedLog((fields, message) => logger.error(fields, message), afterInterval);
  const logRefusal = createPacedLog((fields, message) => logger.info(fields, message), afterInterval);
  return ({ traceId, route }: FailedExchange, error: unknown): void => {
    if (error instanceof PublicError && error.status < 500) {
      const { code, status } = error;
      const fields = { traceId, route, status, code };
      logRefusal(`${code} ${route}`, { fields, message: 'request refused', latest: fields });
      return;
    }
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
    const message = cause instanceof Error ? cause.message : String(cause);
    const type = cause instanceof Error ? cause.name : typeof cause;
    const fields = { traceId, route, error: cause };
    // Messages that differ only in numbers (bytes, ports, times) have the same cause.
    const name = `${type} ${message}`.slice(0, CAUSE_CHARACTERS_MAX).replace(/\d+/g, '#');
    logFault(name, { fields, message: 'request failed', latest: { traceId, route, latest: message } });
  };
}

interface FailureLine {
  readonly fields: Fields;
  readonly message: string;
  /** Replaces `fields` in the line that counts further failures. */
  readonly latest: Fields;
}

/** Writes the first line of each cause immediately, and once per interval the number of further failures. */
function createPacedLog(
  write: (fields: Fields, message: string) => void,
  afterInterval: (run: () => void) => void,
): (cause: string, line: FailureLine) => void {
  const unreported = new Map<string, { count: number; latest: Fields }>();
  const report = (cause: string, message: string) => {
    const { count, latest } = unreported.get(cause)!;
    if (count === 0) return void unreported.delete(cause);
    write({ ...latest, failures: count }, `${message} repeatedly`);
    unreported.set(cause, { count: 0, latest });
    afterInterval(() => report(cause, message));
  };
  return (cause, { fields, message, latest }) => {
    const name = unreported.has(cause) || unreported.size < CAUSES_MAX ? cause : OTHERS;
    const known = unreported.get(name);
    if (known !== undefined) return void unreported.set(name, { count: known.count + 1, latest });
    unreported.set(name, { count: 0, latest });
    afterInterval(() => report(name, message));
    write(fields, message);
  };
}

function afterIntervalMs(run: () => void): void {
  setTimeout(run, INTERVAL_MS).unref();
}
