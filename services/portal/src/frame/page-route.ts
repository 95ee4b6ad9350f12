/** Handles page requests: checks host, session, access and form tokens, then renders pages, downloads and errors. */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import {
  type Action,
  isSessionOf,
  mayDo,
  type ProjectEnvironment,
  type ProjectRecord,
  USER_AGENT_CHARACTERS_MAX,
} from '@playline/access-keys';
import { html } from '@playline/api-docs';
import { PublicError } from '@playline/errors';
import {
  type BytesInFlight,
  ClientDisconnected,
  type Exchange,
  type HeaderList,
  planFormBody,
  type Route,
  readBody,
} from '@playline/http';
import type { FrameParts } from './frame-parts.ts';
import { type Message, toDocument } from './layout.ts';
import { claimantOf } from './limiters.ts';
import type { Access, FormAction, FormValues, PageResponse, PortalPage, ResponseOf, Visit } from './page.ts';
import { pageNotFound, type Visitor } from './scope.ts';

const FRESH_SIGN_IN_MAX_MS = 10 * 60 * 1000;

/** @param formOrigins additional origins to which forms can be submitted or redirected */
function createPageHeaders(formOrigins: readonly string[]): HeaderList {
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    `form-action ${["'self'", ...formOrigins].join(' ')}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ];
  return Object.entries({
    'content-security-policy': policy.join('; '),
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'cache-control': 'no-store',
  }).flat();
}
export const PAGE_HEADERS: HeaderList = createPageHeaders([]);

interface PageCall {
  readonly parts: FrameParts;
  readonly page: PortalPage;
  readonly exchange: Exchange;
  readonly params: Readonly<Record<string, string | string[]>>;
}

/** GET shows the page. POST runs one of the form actions of the page. */
export function createPageRoutes(parts: FrameParts, page: PortalPage): Route[] {
  const routeTo = (method: 'GET' | 'POST', handle: (call: PageCall) => Promise<void>): Route => ({
    method,
    path: page.path,
    handle: (exchange, params) =>
      handle({ parts, page, exchange, params }).catch((fault) => respondWithError(parts, exchange, fault)),
  });
  const show = routeTo('GET', showPage);
  return page.actions === undefined ? [show] : [show, routeTo('POST', handleForm)];
}

async function showPage({ parts, page, exchange, params }: PageCall): Promise<void> {
  if (!checkHost(parts.origin, exchange)) return;
  const visit = await createVisit(parts, exchange, params);
  if (!isAllowed(visit, page.access)) return denyAccess(visit, page.access);
  await parts.limiters.run(visit, async () => {
    const kept = readKeptForm(parts, visit);
    const response = await page.show(visit, kept ?? undefined);
    if (response.kind === 'streamed file') await sendExport(parts, visit, response);
    else sendResponse(visit, response, kept === null ? readNotice(page, visit) : { kind: 'done', text: kept.message });
  });
}

/** Returns the form that the user submitted before signing in again. The user submits the form once more. */
function readKeptForm(parts: FrameParts, visit: Visit) {
  if (visit.account === null || !isFresh(visit, parts)) return null;
  const use = { accountId: visit.account.id, path: visit.path };
  const values = parts.keptForms.read(visit.exchange.request.headers.cookie, use);
  if (values === null) return null;
  visit.headers.push('set-cookie', parts.keptForms.clear());
  return { message: 'You are signed in again. Check your entries and submit the form.', values: toFormValues(values) };
}

async function handleForm({ parts, page, exchange, params }: PageCall): Promise<void> {
  if (!checkHost(parts.origin, exchange)) return;
  assertPortalOrigin(parts.origin, exchange);
  // The body is read before the access check, because permissions can change while a slow body arrives.
  const submitted = await readForm(exchange.request, parts.formBytes, parts.addressOf(exchange.request));
  const values = toFormValues(submitted);
  const visit = await createVisit(parts, exchange, params);
  if (visit.session === null) parts.admitAnonymous(visit.address);
  else parts.admitAccount(visit.session.accountId);
  const name = values.text('form');
  const action = Object.hasOwn(page.actions ?? {}, name) ? page.actions?.[name] : undefined;
  if (action === undefined) throw new PublicError('VALIDATION_ERROR', { message: 'This page has no such form.' });
  if (!isAllowed(visit, page.access) || !isAllowed(visit, action.access)) return denyAccess(visit, action.access);
  const use = { sessionId: visit.session?.id ?? '', path: visit.path, action: name };
  const token = parts.tokens.check(values.text('token'), use);
  if (token === null) return showFailure({ page, visit, values }, new PublicError('VALIDATION_ERROR', FORM_EXPIRED));
  if (action.needsFreshSignIn === true && !isFresh(visit, parts)) {
    const kept = parts.keptForms.keep(submitted, { accountId: visit.account?.id ?? '', path: visit.path });
    const signIn = `/sign-in?again=${kept === null ? 'empty' : '1'}&next=${encodeURIComponent(visit.path)}`;
    return redirect(visit, signIn, [kept ?? parts.keptForms.clear()]);
  }
  // Each token is valid once, so reloading the page neither repeats the action nor reveals a secret again.
  const isUnused = await parts.oneTimeTokens.spend({ purpose: 'form', text: token.nonce, lifetimeS: token.lifetimeS });
  if (!isUnused) return sendResponse(visit, toAlreadySubmitted(visit), null);
  await parts.limiters.run(visit, () => runAction({ page, visit, values }, action));
}

interface Submission {
  readonly page: PortalPage;
  readonly visit: Visit;
  readonly values: FormValues;
}

async function runAction(submission: Submission, action: FormAction): Promise<void> {
  const { visit, values } = submission;
  try {
    sendResponse(visit, await action.run(visit, values), null);
  } catch (fault) {
    if (!(fault instanceof PublicError) || fault.status >= 500) throw fault;
    await showFailure(submission, fault);
  }
}

async function showFailure({ page, visit, values }: Submission, { message, status }: PublicError): Promise<void> {
  const shown = await page.show(visit, { message, values });
  sendResponse(visit, shown.kind === 'page' ? { ...shown, status } : shown, { kind: 'failed', text: message });
}

const FORM_EXPIRED = { message: 'This form has expired or belongs to another session. Submit the form again.' };

const toAlreadySubmitted = ({ path }: Visit): PageResponse => ({
  kind: 'page',
  status: 409,
  title: 'Form already submitted',
  content: html`<p>You have already submitted this form. The action was not repeated. Secrets are shown only once.</p>
<p><a class="button" href="${path}">Back to the page</a></p>`,
});

function isAllowed(visit: Visit, access: Access): boolean {
  if (access === 'public') return true;
  if (visit.account === null) return false;
  return access === 'signed in' || visit.can(access);
}

function isFresh({ session }: Visit, { wallClockMs }: FrameParts): boolean {
  return session !== null && wallClockMs() - session.signedInAt < FRESH_SIGN_IN_MAX_MS;
}

/** Redirects visitors to the sign-in page. For signed-in users, a forbidden page looks like one that does not exist. */
function denyAccess(visit: Visit, access: Access): void {
  if (visit.account !== null || access === 'public') throw pageNotFound();
  const { exchange, path, query } = visit;
  const isPage = exchange.request.method === 'GET' && query.size > 0;
  redirect(visit, `/sign-in?next=${encodeURIComponent(isPage ? `${path}?${query}` : path)}`);
}

function redirect({ exchange }: Visit, location: string, cookies: readonly string[] = []): void {
  const setCookies = cookies.flatMap((each) => ['set-cookie', each]);
  exchange.answerEmpty(303, ['location', location, ...setCookies, ...PAGE_HEADERS]);
}

function readNotice({ notices = {} }: PortalPage, { query }: Visit): Message {
  const name = query.get('done') ?? '';
  return Object.hasOwn(notices, name) ? { kind: 'done', text: notices[name] ?? '' } : null;
}

function sendResponse(visit: Visit, response: PageResponse, message: Message): void {
  if (response.kind === 'redirect') {
    const { to = visit.path, notice, cookie = [] } = response;
    redirect(visit, notice === undefined ? to : `${to}${to.includes('?') ? '&' : '?'}done=${notice}`, [cookie].flat());
  } else if (response.kind === 'external redirect') redirect(visit, response.to.href, [response.cookie]);
  else if (response.kind === 'file') visit.exchange.answerText(200, response, toFileHeaders(response.name));
  else if (response.kind === 'page') sendPage(visit, response, message);
}

const toFileHeaders = (name: string): HeaderList => [
  'content-disposition',
  `attachment; filename="${name}"`,
  ...PAGE_HEADERS,
];

const HTML = 'text/html; charset=utf-8';

function sendPage(visit: Visit, { status = 200, formOrigins = [], ...page }: ResponseOf<'page'>, message: Message) {
  const text = toDocument(visit, page, message);
  visit.exchange.answerText(status, { type: HTML, text }, [...createPageHeaders(formOrigins), ...visit.headers]);
}

/** Logs the error and shows an error page. For an internal error, the page shows only the trace id. */
export function respondWithError({ onFault }: FrameParts, exchange: Exchange, fault: unknown): void {
  const isPublic = fault instanceof PublicError && fault.status < 500;
  if (!isDisconnect(fault)) onFault(exchange, fault);
  if (exchange.answered) return;
  const status = isPublic ? fault.status : 500;
  const content = html`<p>${isPublic ? fault.message : 'The portal could not complete the request. Try again.'}</p>
${isPublic ? '' : html`<p>If the error persists, send this trace id to the operator: <code>${exchange.traceId}</code></p>`}
<p><a class="button" href="/">Go to the start page</a></p>`;
  const retry = fault instanceof PublicError && fault.retryAfterS !== null ? ['retry-after', fault.retryAfterS] : [];
  const text = toDocument(null, { title: TITLES[status] ?? 'Request failed', content });
  exchange.answerText(status, { type: HTML, text }, [...retry, ...PAGE_HEADERS]);
}

const TITLES: Readonly<Record<number, string>> = { 404: 'Not found', 429: 'Too many requests', 500: 'Not available' };

function isDisconnect(fault: unknown): boolean {
  return fault instanceof ClientDisconnected || (fault instanceof Error && fault.cause instanceof ClientDisconnected);
}

const BODY_BYTES_MAX = 64 * 1024;
const FIELDS_MAX = 200;

/**
 * Reads a form body. Memory is divided fairly among client addresses, because the account is not known yet.
 * @throws PublicError VALIDATION_ERROR if the form is invalid or too large; TOO_MANY_REQUESTS_ERROR if memory runs out
 */
async function readForm(request: IncomingMessage, formBytes: BytesInFlight, address: string): Promise<URLSearchParams> {
  const plan = planFormBody(request, BODY_BYTES_MAX);
  const reservation = formBytes.admit(address, plan.declaredBytes ?? BODY_BYTES_MAX);
  try {
    const values = new URLSearchParams((await readBody(request, plan, { reservation })).toString('utf8'));
    if (values.size > FIELDS_MAX)
      throw new PublicError('VALIDATION_ERROR', { message: 'The form has too many fields.' });
    return values;
  } finally {
    reservation.release();
  }
}

const toFormValues = (values: URLSearchParams): FormValues => ({
  text: (name) => (values.get(name) ?? '').trim(),
  all: (name) => values.getAll(name),
});

/** Counts the export against the project's limit until the download ends. */
async function sendExport({ limiters }: FrameParts, visit: Visit, file: ResponseOf<'streamed file'>): Promise<void> {
  const release = await limiters.exports.acquire(claimantOf(visit));
  try {
    await sendStreamedFile(visit, file, toFileHeaders(file.name));
  } finally {
    release();
  }
}

/** A client that reads nothing for this long is disconnected. */
const STALL_MAX_MS = 30_000;

/**
 * Streams a file with backpressure.
 * @throws any error that occurs before the response starts; later errors abort the connection
 */
export async function sendStreamedFile(
  visit: Visit,
  { type, chunks }: Pick<ResponseOf<'streamed file'>, 'type' | 'chunks'>,
  headers: HeaderList,
): Promise<void> {
  const { exchange } = visit;
  const source = chunks[Symbol.asyncIterator]();
  let chunk = await source.next();
  const stream = exchange.openStream(type, headers, { isFile: true });
  // The client has disconnected. Ending the query releases its capacity.
  if (stream === null) return void (await source.return?.());
  try {
    for (; chunk.done !== true && exchange.request.method !== 'HEAD'; chunk = await source.next()) {
      if (stream.write(chunk.value)) continue;
      await once(stream, 'drain', { signal: AbortSignal.any([visit.signal, AbortSignal.timeout(STALL_MAX_MS)]) });
    }
    stream.end();
  } catch (fault) {
    stream.destroy();
    throw fault;
  } finally {
    await source.return?.();
  }
}

/**
 * Rejects unknown host names to prevent DNS rebinding. Redirects 127.0.0.1 to localhost, because passkeys require a
 * host name.
 * @returns false if a redirect was sent
 */
function checkHost(origin: URL, exchange: Exchange): boolean {
  const { request } = exchange;
  const host = request.headers.host ?? '';
  if (host === origin.host) return true;
  const isLoopback = origin.hostname === 'localhost' && host === `127.0.0.1:${origin.port}`;
  if (isLoopback && request.method === 'GET') {
    exchange.answerEmpty(307, ['location', origin.origin + (request.url ?? '/'), 'cache-control', 'no-store']);
    return false;
  }
  throw new PublicError('VALIDATION_ERROR', { message: `Use the portal at ${origin.origin}.` });
}

/**
 * Rejects a form that was not sent from a portal page. Older browsers send only `origin`, and its value is `null`
 * because portal pages suppress the referrer.
 */
function assertPortalOrigin(origin: URL, { request }: Exchange): void {
  const { origin: sender = 'null', 'sec-fetch-site': site } = request.headers;
  const isPortal = sender === origin.origin || (sender === 'null' && site !== undefined);
  if (isPortal && (site === undefined || site === 'same-origin')) return;
  throw new PublicError('VALIDATION_ERROR', { message: 'This form was not sent from a portal page.' });
}

/**
 * @throws PublicError RESOURCE_NOT_FOUND if the project or environment does not exist or the account cannot access it;
 *   any store error, in which case access is denied
 */
async function createVisit(parts: FrameParts, exchange: Exchange, params: PageCall['params']): Promise<Visit> {
  const url = new URL(exchange.request.url ?? '/', parts.origin);
  const visitor = await findVisitor(parts, exchange);
  const names = Object.fromEntries(Object.entries(params).map(([name, value]) => [name, String(value)]));
  const projects = visitor === null ? [] : await listProjects(parts, visitor);
  const firing = visitor === null ? new Map<string, number>() : await parts.countFiring();
  const { project = null, environment = null } = visitor === null ? {} : findScope(projects, names);
  const account = visitor?.account ?? null;
  const sessionId = visitor?.session.id ?? '';
  const stored = new URLSearchParams(parts.openedCookie.read(exchange.request.headers.cookie) ?? '');
  const opened = project === null || environment === null ? stored : markOpened(stored, project.id, environment.name);
  const isUnchanged = opened.toString() === stored.toString();
  return {
    exchange,
    path: url.pathname,
    query: url.searchParams,
    project,
    environment,
    account,
    params: names,
    projects,
    firing,
    opened,
    headers: isUnchanged ? [] : ['set-cookie', parts.openedCookie.toSetCookie(opened.toString())],
    signal: exchange.disconnectSignal,
    session: visitor?.session ?? null,
    userAgent: String(exchange.request.headers['user-agent'] ?? '').slice(0, USER_AGENT_CHARACTERS_MAX),
    address: parts.addressOf(exchange.request),
    can: (action: Action, projectId: string | null = project?.id ?? null) =>
      account !== null && mayDo({ account, action, projectId }),
    author: { changedBy: account?.id ?? '', requestId: exchange.traceId },
    form: (action, content, { path = url.pathname, className = 'form' } = {}) =>
      html`<form class="${className}" method="post" action="${path}">
<input type="hidden" name="form" value="${action}"><input type="hidden" name="token" value="${parts.tokens.issue({ sessionId, path, action })}">
${content}
</form>`,
  };
}

async function findVisitor(parts: FrameParts, { request }: Exchange): Promise<Visitor | null> {
  const token = parts.cookie.read(request.headers.cookie);
  const session = token === null ? null : await parts.sessions.find(token);
  if (session === null) return null;
  const account = (await parts.accounts()).find((each) => isSessionOf(session, each));
  return account?.state === 'live' ? { account, session } : null;
}

async function listProjects(parts: FrameParts, { account }: Visitor): Promise<readonly ProjectRecord[]> {
  return (await parts.projects())
    .filter(({ id }) => mayDo({ account, action: 'project.read', projectId: id }))
    .toSorted((a, b) => b.state.localeCompare(a.state) || a.name.localeCompare(b.name));
}

function findScope(
  projects: readonly ProjectRecord[],
  { project: id, environment: name }: Readonly<Record<string, string>>,
): { readonly project?: ProjectRecord; readonly environment?: ProjectEnvironment } {
  if (id === undefined) return {};
  const project = projects.find((each) => each.id === id);
  if (project === undefined) throw pageNotFound();
  if (name === undefined) return { project };
  const environment = project.environments.find((each) => each.name === name);
  if (environment === undefined) throw pageNotFound();
  return { project, environment };
}

const OPENED_MAX = 8;

const markOpened = (opened: URLSearchParams, projectId: string, environment: string) =>
  new URLSearchParams([
    [projectId, environment],
    ...[...opened].filter(([id]) => id !== projectId).slice(0, OPENED_MAX - 1),
  ]);
