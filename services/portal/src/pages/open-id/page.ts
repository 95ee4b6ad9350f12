/** The OpenID Connect callback completes a sign-in, links a provider to an account, or accepts a one-time link. */
import {
  type AccountRecord,
  findByOpenId,
  findJoinable,
  invalidLink,
  joinInvitation,
  linkOpenId,
  type OpenIdProof,
  type OpenIdSignIn,
  ProviderUnavailable,
  signedInAtOf,
  toReturnPath,
} from '@playline/access-keys';
import { html } from '@playline/api-docs';
import { PublicError } from '@playline/errors';
import type { PageResponse, PortalPage, Visit } from '../../frame/page.ts';
import { pageNotFound } from '../../frame/scope.ts';
import type { PageParts } from '../index.ts';
import { createLinks, INVITATION_PATH, toAccountId, toInviteeContext } from '../links/link.ts';
import { OPEN_ID_PATH, type SignInPurpose, toProviderUnavailable, toRetryPath } from '../sign-in/open-id.ts';
import { beginSession, toClient, toContext } from '../sign-in/parts.ts';

interface Callback<P extends SignInPurpose = SignInPurpose> {
  readonly purpose: P;
  readonly code: string;
  readonly proof: OpenIdProof;
}

interface SignInResult {
  readonly account: AccountRecord;
  readonly cookie: string;
  readonly to: string;
  readonly notice?: string;
}

export function createOpenIdPage(parts: PageParts, openId: OpenIdSignIn): PortalPage {
  const { writeAudit, frame } = parts;
  return {
    path: OPEN_ID_PATH,
    access: 'public',
    show: async (visit) => {
      // Rejected, because a HEAD request would use up the state before the browser sends its GET request.
      if (visit.exchange.request.method === 'HEAD') throw pageNotFound();
      // Rate-limited like forms, because each request can call the provider and write an audit entry.
      frame.admitAnonymous(visit.address);
      let returnPath = '/sign-in';
      try {
        const browserText = frame.providerCookie.read(visit.exchange.request.headers.cookie);
        const url = new URL(`${visit.path}?${visit.query}`, frame.origin);
        const { context, secret: code, proof } = await openId.finish({ url, browserText });
        const purpose = JSON.parse(context) as SignInPurpose;
        returnPath = toRetryPath(purpose, code);
        const { account, ...redirect } = await complete(parts, visit, { purpose, code, proof });
        const detail = { method: 'openid', issuer: proof.openId.issuer };
        const action = purpose.kind === 'link' ? 'openid.link' : 'session.create';
        await writeAudit(visit, { action, actor: account.id, object: account.id, detail });
        return { kind: 'redirect', ...redirect };
      } catch (error) {
        if (error instanceof ProviderUnavailable) return toProviderUnavailable(openId, returnPath);
        if (!(error instanceof PublicError) || error.status >= 500) throw error;
        await writeAudit(visit, { action: 'session.refuse', detail: { method: 'openid', code: error.code } });
        return toSignInFailed(error, returnPath);
      }
    },
  };
}

async function complete(parts: PageParts, visit: Visit, { purpose, ...rest }: Callback): Promise<SignInResult> {
  if (purpose.kind === 'link') return link(parts, visit, { ...rest, purpose });
  if (purpose.kind === 'accept') return accept(parts, visit, { ...rest, purpose });
  const { account, text: sessionToken } = await parts.signIn.byOpenId({ ...toClient(parts, visit), proof: rest.proof });
  return { account, cookie: parts.frame.cookie.toSetCookie(sessionToken), to: toReturnPath(purpose.next) };
}

type LinkCallback = Callback<Extract<SignInPurpose, { kind: 'link' }>>;
type AcceptCallback = Callback<Extract<SignInPurpose, { kind: 'accept' }>>;

/** Links the provider to the account whose session started the redirect. No other session can complete the redirect. */
async function link(parts: PageParts, visit: Visit, { purpose, proof }: LinkCallback): Promise<SignInResult> {
  const { session } = visit;
  if (session === null || session.id !== purpose.sessionId)
    throw new PublicError('UNAUTHORISED_REQUEST', { message: 'Your session has ended. Sign in and try again.' });
  const account = await linkOpenId(toContext(parts, visit), { accountId: session.accountId, openId: proof.openId });
  return { account, cookie: await beginSession(parts, visit, { account }), to: '/settings', notice: 'linked' };
}

async function accept(parts: PageParts, visit: Visit, callback: AcceptCallback): Promise<SignInResult> {
  const joined = await join(parts, visit, callback);
  const account = joined ?? (await acceptLink(parts, visit, callback));
  // Accepting a one-time link counts as a fresh sign-in. Joining with an existing account does not.
  const session = joined === null ? { account } : { account, signedInAt: signedInAtOf(callback.proof) };
  return { account, cookie: await beginSession(parts, visit, session), to: '/' };
}

/** Adds the role in the invitation to the account that is linked to the provider's user, if there is one. */
async function join(parts: PageParts, visit: Visit, { purpose, code, proof }: AcceptCallback) {
  const accounts = await parts.accounts.all();
  const account = findByOpenId(accounts, proof.openId);
  if (purpose.path !== INVITATION_PATH || account === null) return null;
  const request = { text: code, accountId: account.id };
  if (findJoinable(accounts, request, Date.now()) === null) throw invalidLink();
  return joinInvitation(toInviteeContext(parts, visit, account.id), request);
}

async function acceptLink(parts: PageParts, visit: Visit, { purpose, code, proof }: AcceptCallback) {
  const { path, login, name } = purpose;
  const oneTimeLink = createLinks(parts).find((each) => each.path === path);
  const found = (await oneTimeLink?.find(code)) ?? null;
  if (oneTimeLink === undefined || found === null) throw invalidLink();
  const invitee = { id: toAccountId(found), login, name, passwordHash: null, passkey: null, openId: proof.openId };
  return oneTimeLink.accept(toInviteeContext(parts, visit, invitee.id), code, invitee);
}

/** Does not show text from the provider, which anyone could put into the URL. */
function toSignInFailed({ status, message }: PublicError, returnPath: string): PageResponse {
  const content = html`<p role="alert">${message}</p>
<p><a class="button" href="${returnPath}">Back</a></p>`;
  return { kind: 'page', status, title: 'Sign-in failed', content };
}
