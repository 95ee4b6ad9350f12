import {
  type Action,
  isSessionOf,
  mayDo,
  type ProjectEnvironment,
  type ProjectRecord,
  USER_AGENT_CHARACTERS_MAX,
} from '@playline/access-keys';
import { html } from '@playline/api-docs';
import type { Exchange } from '@playline/http';
import { notThere } from './not-there.ts';
import type { Visit } from './page.ts';
import type { FrameParts, Visitor } from './parts-of-frame.ts';

/**
 * Who asks for what. A project or environment that the path names and that does not exist, or that the account has no role
 * in, is not there, in the same words.
 * @throws PublicError RESOURCE_NOT_FOUND; else what a store throws, and then nobody is let in
 */
export async function visitOf(
  parts: FrameParts,
  exchange: Exchange,
  params: Readonly<Record<string, string | string[]>>,
): Promise<Visit> {
  const url = new URL(exchange.request.url ?? '/', parts.origin);
  const visitor = await visitorOf(parts, exchange);
  const names = Object.fromEntries(Object.entries(params).map(([name, value]) => [name, String(value)]));
  const { project = null, environment = null } =
    visitor === null ? {} : placeOf(await projectsFor(parts, names), names, visitor);
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
<input type="hidden" name="deed" value="${deed}"><input type="hidden" name="token" value="${parts.tokens.issue({ sessionId, path, deed })}">
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

interface Place {
  readonly project?: ProjectRecord;
  readonly environment?: ProjectEnvironment;
}

/** By the id of the project and the name of its environment, each compared whole. */
function placeOf(
  projects: readonly ProjectRecord[],
  { project: id, environment: name }: Readonly<Record<string, string>>,
  { account }: Visitor,
): Place {
  if (id === undefined) return {};
  const project = projects.find((each) => each.id === id);
  if (project === undefined || !mayDo({ account, action: 'project.read', projectId: project.id })) throw notThere();
  if (name === undefined) return { project };
  const environment = project.environments.find((each) => each.name === name);
  if (environment === undefined) throw notThere();
  return { project, environment };
}
