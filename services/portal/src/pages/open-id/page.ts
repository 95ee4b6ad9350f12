/** The redirect address of the identity provider: completes the sign-in, the link or the acceptance that began there. */
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
import type { Answer, PortalPage, Visit } from '../../frame/page.ts';
import { pageNotFound } from '../../frame/scope.ts';
import type { PagesParts } from '../index.ts';
import { contextFor, createLinks, INVITATION_PATH, idFor } from '../links/link.ts';
import { OPEN_ID_PATH, returnPathOf, type SignInPurpose, toProviderUnavailable } from '../sign-in/open-id.ts';
import { beginSession, contextOf, fromOf } from '../sign-in/parts.ts';

interface Returned<P extends SignInPurpose = SignInPurpose> {
  readonly purpose: P;
  /** Code of a one-time link, '' without one. */
  readonly code: string;
  readonly proof: OpenIdProof;
}

interface SignInResult {
  readonly account: AccountRecord;
  readonly cookie: string;
  readonly to: string;
  readonly notice?: string;
}

export function createOpenIdPage(parts: PagesParts, openId: OpenIdSignIn): PortalPage {
  const { writeAudit, frame } = parts;
  return {
    path: OPEN_ID_PATH,
    access: 'public',
    show: async (visit) => {
      // The request uses up the state, and browsers come back with GET.
      if (visit.exchange.request.method === 'HEAD') throw pageNotFound();
      // Limited like a form, because refusals are audited and the provider may be called.
      frame.admitStranger(visit.address);
      let back = '/sign-in';
      try {
        const browserText = frame.providerCookie.read(visit.exchange.request.headers.cookie);
        const url = new URL(`${visit.path}?${visit.query}`, frame.origin);
        const { errand, secret: code, proof } = await openId.finish({ url, browserText });
        const purpose = JSON.parse(errand) as SignInPurpose;
        back = returnPathOf(purpose, code);
        const { account, ...redirect } = await complete(parts, visit, { purpose, code, proof });
        const detail = { way: 'openid', issuer: proof.openId.issuer };
        const action = purpose.kind === 'link' ? 'openid.link' : 'session.create';
        await writeAudit(visit, { action, actor: account.id, object: account.id, detail });
        return { kind: 'redirect', ...redirect };
      } catch (fault) {
        if (fault instanceof ProviderUnavailable) return toProviderUnavailable(openId, back);
        if (!(fault instanceof PublicError) || fault.status >= 500) throw fault;
        await writeAudit(visit, { action: 'session.refuse', detail: { way: 'openid', code: fault.code } });
        return toRefused(fault, back);
      }
    },
  };
}

async function complete(parts: PagesParts, visit: Visit, { purpose, ...rest }: Returned): Promise<SignInResult> {
  if (purpose.kind === 'link') return link(parts, visit, { ...rest, purpose });
  if (purpose.kind === 'accept') return accept(parts, visit, { ...rest, purpose });
  const { account, text } = await parts.signIn.byOpenId({ ...fromOf(parts, visit), proof: rest.proof });
  return { account, cookie: parts.frame.cookie.toSetCookie(text), to: toReturnPath(purpose.next) };
}

type Linking = Returned<Extract<SignInPurpose, { kind: 'link' }>>;
type Accepting = Returned<Extract<SignInPurpose, { kind: 'accept' }>>;

/** Only the session that started it may link its account. */
async function link(parts: PagesParts, visit: Visit, { purpose, proof }: Linking): Promise<SignInResult> {
  const { session } = visit;
  if (session === null || session.id !== purpose.sessionId)
    throw new PublicError('UNAUTHORISED_REQUEST', { message: 'You have signed out. Sign in and try again.' });
  const account = await linkOpenId(contextOf(parts, visit), { accountId: session.accountId, openId: proof.openId });
  return { account, cookie: await beginSession(parts, visit, { account }), to: '/settings', notice: 'linked' };
}

async function accept(parts: PagesParts, visit: Visit, returned: Accepting): Promise<SignInResult> {
  const joined = await join(parts, visit, returned);
  const account = joined ?? (await acceptLink(parts, visit, returned));
  // A link proves as much as a new password; joining with an existing account does not.
  const session = joined === null ? { account } : { account, signedInAt: signedInAtOf(returned.proof) };
  return { account, cookie: await beginSession(parts, visit, session), to: '/' };
}

/** Adds an invitation to the account that is linked to the person, if there is one. */
async function join(parts: PagesParts, visit: Visit, { purpose, code, proof }: Accepting) {
  const accounts = await parts.accounts.all();
  const account = findByOpenId(accounts, proof.openId);
  if (purpose.path !== INVITATION_PATH || account === null) return null;
  const joining = { text: code, accountId: account.id };
  if (findJoinable(accounts, joining, Date.now()) === null) throw invalidLink();
  return joinInvitation(contextFor(parts, visit, account.id), joining);
}

async function acceptLink(parts: PagesParts, visit: Visit, { purpose, code, proof }: Accepting) {
  const { path, login, name } = purpose;
  const oneTimeLink = createLinks(parts).find((each) => each.path === path);
  const found = (await oneTimeLink?.find(code)) ?? null;
  if (oneTimeLink === undefined || found === null) throw invalidLink();
  const person = { id: idFor(found), login, name, passwordHash: null, passkey: null, openId: proof.openId };
  return oneTimeLink.accept(contextFor(parts, visit, person.id), code, person);
}

/** Never contains a text of the provider. */
function toRefused({ status, message }: PublicError, back: string): Answer {
  const content = html`<p role="alert">${message}</p>
<p><a class="button" href="${back}">Back</a></p>`;
  return { kind: 'page', status, title: 'Sign-in failed', content };
}
