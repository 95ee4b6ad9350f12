import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { Writable } from 'node:stream';
import {
  type Action,
  isSessionOf,
  mayDo,
  type ProjectEnvironment,
  type ProjectRecord,
  USER_AGENT_CHARACTERS_MAX,
} from '@playline/access-keys';
import { type HtmlValue, html } from '@playline/api-docs';
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
import type { FrameParts, Visitor } from './frame-parts.ts';
import { toDocument } from './layout.ts';
import { pageNotFound } from './not-found.ts';
import type { Access, Answer, FormAction, FormValues, PortalPage, Visit } from './page.ts';
import { claimantOf } from './shares.ts';

/** A sign-in counts as fresh for this long: who makes a secret shall be the person at the keyboard. */
const FRESH_MAX_MS = 10 * 60 * 1000;

/**
 * Pages run scripts and styles of this server alone, are shown in no frame, send forms nowhere else, and are kept in no
 * cache: they hold what only one account may see.
 */
const policyWith = (formsTo: readonly string[]) =>
  `default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; form-action ${["'self'", ...formsTo].join(' ')}; base-uri 'none'; frame-ancestors 'none'`;

/** @param formsTo origins that a form of the page may lead to besides: browsers judge where it is led on to as well */
const headersWith = (formsTo: readonly string[]): HeaderList => [
  ...['content-security-policy', policyWith(formsTo)],
  ...['x-content-type-options', 'nosniff'],
  ...['x-frame-options', 'DENY'],
  ...['referrer-policy', 'no-referrer'],
  ...['cross-origin-opener-policy', 'same-origin'],
  ...['cross-origin-resource-policy', 'same-origin'],
  ...['cache-control', 'no-store'],
];
export const PAGE_HEADERS: HeaderList = headersWith([]);

type Params = Readonly<Record<string, string | string[]>>;

/** The routes of a page: GET shows it, POST does one of its deeds. */
export function createPageRoutes(parts: FrameParts, page: PortalPage): Route[] {
  const show: Route = {
    method: 'GET',
    path: page.path,
    handle: (exchange, params) => answerFaults(parts, exchange, () => showPage({ parts, page, exchange, params })),
  };
  if (page.actions === undefined) return [show];
  const change: Route = {
    method: 'POST',
    path: page.path,
    handle: (exchange, params) => answerFaults(parts, exchange, () => handleForm({ parts, page, exchange, params })),
  };
  return [show, change];
}

interface PageCall {
  readonly parts: FrameParts;
  readonly page: PortalPage;
  readonly exchange: Exchange;
  readonly params: Params;
}

/** Answers what goes wrong with a page: whoever asks is a person. */
async function answerFaults(parts: FrameParts, exchange: Exchange, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (fault) {
    answerFault(parts, exchange, fault);
  }
}

async function showPage({ parts, page, exchange, params }: PageCall): Promise<void> {
  if (!assertOwnHost(parts.origin, exchange)) return;
  const visit = await visitOf(parts, exchange, params);
  if (!isAdmitted(visit, page.access)) return refuse(visit, page.access);
  await parts.shares.run(visit, async () => {
    const answer = await page.show(visit);
    const message = noticeOf(page, visit);
    if (answer.kind === 'long file') await sendExport(parts, visit, answer);
    else sendAnswer(visit, answer, message);
  });
}

async function handleForm({ parts, page, exchange, params }: PageCall): Promise<void> {
  if (!assertOwnHost(parts.origin, exchange)) return;
  assertOwnOrigin(parts.origin, exchange);
  // Before anybody is judged: whoever sends the end of a form late is judged by what they may do then.
  const values = await readForm(exchange.request, parts.forms, parts.addressOf(exchange.request));
  const visit = await visitOf(parts, exchange, params);
  if (visit.session === null) parts.admitStranger(visit.address);
  else parts.admitMember(visit.session.accountId);
  const name = values.text('deed');
  const deed = Object.hasOwn(page.actions ?? {}, name) ? page.actions?.[name] : undefined;
  if (deed === undefined) throw new PublicError('VALIDATION_ERROR', { message: 'This page has no such form.' });
  if (!isAdmitted(visit, page.access) || !isAdmitted(visit, deed.access)) return refuse(visit, deed.access);
  const use = { sessionId: visit.session?.id ?? '', path: visit.path, action: name };
  const token = parts.tokens.check(values.text('token'), use);
  if (token === null) return showFailed({ page, visit, values }, new PublicError('VALIDATION_ERROR', FORM_TOO_OLD));
  if (deed.needsFreshSignIn === true && !isFresh(visit, parts)) return redirectToFreshSignIn(visit);
  // The guarantee: of however many requests with this form one goes on, so a reload does nothing twice and shows nothing again.
  const isFirst = await parts.oneTime.spend({ purpose: 'form', text: token.nonce, lifetimeS: token.lifetimeS });
  if (!isFirst) return sendAnswer(visit, ALREADY_DONE(visit), null);
  await parts.shares.run(visit, () => runAction({ page, visit, values }, deed));
}

interface Submission {
  readonly page: PortalPage;
  readonly visit: Visit;
  readonly values: FormValues;
}

async function runAction(doing: Submission, action: FormAction): Promise<void> {
  const { visit, values } = doing;
  try {
    sendAnswer(visit, await action.run(visit, values), null);
  } catch (fault) {
    if (!(fault instanceof PublicError) || fault.status >= 500) throw fault;
    await showFailed(doing, fault);
  }
}

/** The page with what was typed, and what is wrong with it. */
async function showFailed({ page, visit, values }: Submission, { message, status }: PublicError): Promise<void> {
  const shown = await page.show(visit, { message, values });
  sendAnswer(visit, shown.kind === 'page' ? { ...shown, status } : shown, { kind: 'failed', text: message });
}

const FORM_TOO_OLD = {
  message: 'The form was made for another sign-in, or is older than twelve hours. Look at it, and send it again.',
};

const ALREADY_DONE = ({ path }: Visit): Answer => ({
  kind: 'page',
  status: 409,
  title: 'Already sent',
  content: html`<p>This form was sent before. It does nothing a second time, and a secret that it showed is not shown again. The page tells what came of it.</p>
<p><a class="button" href="${path}">Back to the page</a></p>`,
});

function isAdmitted(visit: Visit, access: Access): boolean {
  if (access === 'everybody') return true;
  if (visit.account === null) return false;
  return access === 'signed in' || visit.mayDo(access);
}

function isFresh({ session }: Visit, { wallClockMs }: FrameParts): boolean {
  return session !== null && wallClockMs() - session.signedInAt < FRESH_MAX_MS;
}

/** To sign in, or, for whoever has, the same as for what does not exist: nobody learns what others have. */
function refuse(visit: Visit, access: Access): void {
  if (visit.account !== null || access === 'everybody') throw pageNotFound();
  visit.exchange.answerEmpty(303, [
    'location',
    `/sign-in?next=${encodeURIComponent(returnPathOf(visit))}`,
    ...PAGE_HEADERS,
  ]);
}

/** Where a person goes on after the sign-in; a form that was sent is not. */
function returnPathOf({ exchange, path, query }: Visit): string {
  const text = query.toString();
  return exchange.request.method === 'GET' && text !== '' ? `${path}?${text}` : path;
}

function redirectToFreshSignIn(visit: Visit): void {
  visit.exchange.answerEmpty(303, [
    ...['location', `/sign-in?again=1&next=${encodeURIComponent(visit.path)}`],
    ...PAGE_HEADERS,
  ]);
}

function noticeOf({ notices }: PortalPage, { query }: Visit): { kind: 'done'; text: string } | null {
  const name = query.get('done') ?? '';
  const text = notices !== undefined && Object.hasOwn(notices, name) ? notices[name] : undefined;
  return text === undefined ? null : { kind: 'done', text };
}

type Message = { readonly kind: 'done' | 'failed'; readonly text: string } | null;

/** One export of the project's share, from its first query until the client has all of it, or leaves. */
async function sendExport({ shares }: FrameParts, visit: Visit, file: Of<'long file'>): Promise<void> {
  const leave = await shares.exports.acquire(claimantOf(visit));
  try {
    await sendLongFile(visit, file, toFileHeaders(file.name));
  } finally {
    leave();
  }
}

function sendAnswer(visit: Visit, answer: Answer, message: Message): void {
  if (answer.kind === 'see') sendRedirect(visit, answer);
  else if (answer.kind === 'leave') sendExternalRedirect(visit, answer);
  else if (answer.kind === 'file') sendFile(visit, answer);
  else if (answer.kind === 'page') sendPage(visit, answer, message);
}

type Of<K extends Answer['kind']> = Extract<Answer, { kind: K }>;

function sendRedirect({ exchange }: Visit, { to, notice, cookie }: Of<'see'>): void {
  const location = notice === undefined ? to : `${to}${to.includes('?') ? '&' : '?'}done=${notice}`;
  const given = [cookie ?? []].flat().flatMap((each) => ['set-cookie', each]);
  exchange.answerEmpty(303, ['location', location, ...given, ...PAGE_HEADERS]);
}

function sendExternalRedirect({ exchange }: Visit, { to, cookie }: Of<'leave'>): void {
  exchange.answerEmpty(303, ['location', to.href, 'set-cookie', cookie, ...PAGE_HEADERS]);
}

function sendFile({ exchange }: Visit, { name, type, text }: Of<'file'>): void {
  exchange.answerText(200, { type, text }, toFileHeaders(name));
}

const toFileHeaders = (name: string): HeaderList => [
  ...['content-disposition', `attachment; filename="${name}"`],
  ...PAGE_HEADERS,
];

function sendPage(visit: Visit, { status = 200, ...page }: Of<'page'>, message: Message): void {
  const { title, content, scripts, formsTo = [] } = page;
  const text = toDocument(visit, { title, content, message, ...(scripts === undefined ? {} : { scripts }) });
  visit.exchange.answerText(status, { type: HTML, text }, headersWith(formsTo));
}

const HTML = 'text/html; charset=utf-8';

/** What a person is shown of a fault, with the trace id to give to whoever runs the portal. */
export function answerFault({ onFault }: FrameParts, exchange: Exchange, fault: unknown): void {
  const isPublic = fault instanceof PublicError && fault.status < 500;
  if (!isPublic && !isDisconnect(fault)) onFault(exchange, fault);
  if (exchange.answered) return;
  const status = isPublic ? fault.status : 500;
  const message = isPublic
    ? fault.message
    : 'Something inside failed or did not answer in time. Nothing was lost: try again.';
  const content: HtmlValue = html`<p>${message}</p>
${isPublic ? '' : html`<p>If it lasts, give the operator this trace id: <code>${exchange.traceId}</code></p>`}
<p><a class="button" href="/">To the start</a></p>`;
  const wait = fault instanceof PublicError && fault.retryAfterS !== null ? ['retry-after', fault.retryAfterS] : [];
  const title = TITLES[status] ?? 'That did not work';
  const text = toDocument(null, { title, content });
  exchange.answerText(status, { type: HTML, text }, [...wait, ...PAGE_HEADERS]);
}

/** What was given up because nobody waits for it any more has not failed. */
function isDisconnect(fault: unknown): boolean {
  return fault instanceof ClientDisconnected || (fault instanceof Error && fault.cause instanceof ClientDisconnected);
}

const TITLES: Readonly<Record<number, string>> = {
  404: 'Not found',
  429: 'Too many tries',
  500: 'Not at the moment',
};

/** The longest form is one with a pasted text; a page sends less than a tenth of it. */
const BODY_BYTES_MAX = 64 * 1024;
/** Fields of a form; more are nobody's. */
const FIELDS_MAX = 200;

/**
 * Reads the body of a form. The caller is not known yet, so each address has its share of the memory of all forms.
 * @throws PublicError VALIDATION_ERROR when it is none, or too large; TOO_MANY_REQUESTS_ERROR when there is no memory
 */
async function readForm(request: IncomingMessage, forms: BytesInFlight, address: string): Promise<FormValues> {
  const plan = planFormBody(request, BODY_BYTES_MAX);
  const reservation = forms.admit(address, plan.declaredBytes ?? BODY_BYTES_MAX);
  try {
    const body = await readBody(request, plan, { reservation });
    return toFormValues(body.toString('utf8'));
  } finally {
    reservation.release();
  }
}

/** @throws PublicError VALIDATION_ERROR for more fields than a form has */
function toFormValues(text: string): FormValues {
  const values = new URLSearchParams(text);
  if (values.size > FIELDS_MAX) throw new PublicError('VALIDATION_ERROR', { message: 'The form has too many fields.' });
  return { text: (name) => (values.get(name) ?? '').trim(), all: (name) => values.getAll(name) };
}

interface LongFile {
  readonly type: string;
  readonly pieces: AsyncIterable<string>;
}

/** Whoever takes nothing for so long has gone, or holds a place for nothing. */
const STALL_MAX_MS = 30_000;

/**
 * Sends a file piece by piece, no faster than it is taken: one piece is held at a time. The first is made in front of the
 * answer, so that what cannot be read at all is told by a page.
 * @throws what the first piece throws; of a later one the connection ends, which browsers show as a failed download
 */
export async function sendLongFile(visit: Visit, { type, pieces }: LongFile, headers: HeaderList): Promise<void> {
  const { exchange } = visit;
  const source = pieces[Symbol.asyncIterator]();
  let piece = await source.next();
  const stream = exchange.openStream(type, headers, { isFile: true });
  // Otherwise the query stays open, and its place in the share of the project is lost.
  if (stream === null) return void (await source.return?.());
  try {
    for (; piece.done !== true && exchange.request.method !== 'HEAD'; piece = await source.next()) {
      if (!stream.write(piece.value)) await drained(stream, visit.signal);
    }
    stream.end();
  } catch (fault) {
    stream.destroy();
    throw fault;
  } finally {
    await source.return?.();
  }
}

async function drained(stream: Writable, signal: AbortSignal): Promise<void> {
  await once(stream, 'drain', { signal: AbortSignal.any([signal, AbortSignal.timeout(STALL_MAX_MS)]) });
}

/**
 * Takes requests for the portal's own host alone: another name that leads here may be an attacker's (DNS rebinding).
 * Whoever comes by the address 127.0.0.1 where the portal is called localhost is led there, since passkeys know names only.
 * @returns false when the exchange has been answered by that
 */
function assertOwnHost(origin: URL, exchange: Exchange): boolean {
  const { request } = exchange;
  const host = request.headers.host ?? '';
  if (host === origin.host) return true;
  const isOwnAddress = origin.hostname === 'localhost' && host === `127.0.0.1:${origin.port}`;
  if (isOwnAddress && request.method === 'GET') {
    exchange.answerEmpty(307, ['location', origin.origin + (request.url ?? '/'), 'cache-control', 'no-store']);
    return false;
  }
  throw new PublicError('VALIDATION_ERROR', { message: `The portal is at ${origin.origin}, and answers there alone.` });
}

/**
 * A change is asked for from a page of ours. Browsers say where a form stood in `sec-fetch-site`; older ones in `origin`,
 * which is `null` from pages without referrer, as ours are.
 * @throws PublicError VALIDATION_ERROR for a form of any other page, and for one that nobody vouches for
 */
function assertOwnOrigin(origin: URL, { request }: Exchange): void {
  const { origin: given = 'null', 'sec-fetch-site': site } = request.headers;
  const isOurs = given === origin.origin || (given === 'null' && site !== undefined);
  if (isOurs && (site === undefined || site === 'same-origin')) return;
  throw new PublicError('VALIDATION_ERROR', { message: 'The form was sent from another page than one of the portal.' });
}

/**
 * Who asks for what. A project or environment that the path names and that does not exist, or that the account has no role
 * in, is not there, in the same words.
 * @throws PublicError RESOURCE_NOT_FOUND; else what a store throws, and then nobody is let in
 */
async function visitOf(
  parts: FrameParts,
  exchange: Exchange,
  params: Readonly<Record<string, string | string[]>>,
): Promise<Visit> {
  const url = new URL(exchange.request.url ?? '/', parts.origin);
  const visitor = await visitorOf(parts, exchange);
  const names = Object.fromEntries(Object.entries(params).map(([name, value]) => [name, String(value)]));
  const { project = null, environment = null } =
    visitor === null ? {} : findScope(await projectsFor(parts, names), names, visitor);
  const account = visitor?.account ?? null;
  const sessionId = visitor?.session.id ?? '';
  const may = (action: Action, projectId: string | null = project?.id ?? null) =>
    account !== null && mayDo({ account, action, projectId });
  return {
    exchange,
    path: url.pathname,
    query: url.searchParams,
    project,
    environment,
    account,
    params: names,
    signal: exchange.gone,
    session: visitor?.session ?? null,
    userAgent: String(exchange.request.headers['user-agent'] ?? '').slice(0, USER_AGENT_CHARACTERS_MAX),
    address: parts.addressOf(exchange.request),
    mayDo: may,
    author: { changedBy: account?.id ?? '', requestId: exchange.traceId },
    form: (deed, content, { path = url.pathname, className = 'form' } = {}) =>
      html`<form class="${className}" method="post" action="${path}">
<input type="hidden" name="deed" value="${deed}"><input type="hidden" name="token" value="${parts.tokens.issue({ sessionId, path, action: deed })}">
${content}
</form>`,
  };
}

async function visitorOf(parts: FrameParts, { request }: Exchange): Promise<Visitor | null> {
  const text = parts.cookie.read(request.headers.cookie);
  if (text === null) return null;
  const session = await parts.sessions.find(text);
  if (session === null) return null;
  const account = (await parts.accounts()).find((each) => isSessionOf(session, each));
  return account?.state === 'live' ? { account, session } : null;
}

async function projectsFor(parts: FrameParts, names: Readonly<Record<string, string>>) {
  return names.project === undefined ? [] : parts.projects();
}

interface Scope {
  readonly project?: ProjectRecord;
  readonly environment?: ProjectEnvironment;
}

/** By the id of the project and the name of its environment, each compared whole. */
function findScope(
  projects: readonly ProjectRecord[],
  { project: id, environment: name }: Readonly<Record<string, string>>,
  { account }: Visitor,
): Scope {
  if (id === undefined) return {};
  const project = projects.find((each) => each.id === id);
  if (project === undefined || !mayDo({ account, action: 'project.read', projectId: project.id })) throw pageNotFound();
  if (name === undefined) return { project };
  const environment = project.environments.find((each) => each.name === name);
  if (environment === undefined) throw pageNotFound();
  return { project, environment };
}
