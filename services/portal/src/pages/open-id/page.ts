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
import type { FrameParts } from '../../frame/frame-parts.ts';
import { pageNotFound } from '../../frame/not-found.ts';
import type { Answer, PortalPage, Visit } from '../../frame/page.ts';
import { contextFor, createLinks, INVITATION_PATH, idFor, type LinkPagesParts } from '../links/link.ts';
import { OPEN_ID_PATH, returnPathOf, type SignInPurpose, toProviderUnavailable } from '../sign-in/open-id.ts';
import { beginSession, contextOf, fromOf } from '../sign-in/parts.ts';

export interface OpenIdPageParts extends LinkPagesParts {
  readonly openId: OpenIdSignIn;
  readonly frame: LinkPagesParts['frame'] & Pick<FrameParts, 'origin' | 'admitStranger'>;
}

/** Somebody who has come back from the provider, in the browser that was sent there. */
interface Returned {
  readonly errand: SignInPurpose;
  /** Of the link that they came with, '' without one. */
  readonly code: string;
  readonly proof: OpenIdProof;
}

/** Who is let in, and where they go on. */
interface SignInResult {
  readonly account: AccountRecord;
  readonly cookie: string;
  readonly to: string;
  readonly notice?: string;
}

/** Where the provider sends people back to: what they were sent for is done, once, and the address is left at once. */
export function createOpenIdPage(parts: OpenIdPageParts): PortalPage {
  const { openId, writeAudit: note } = parts;
  return {
    path: OPEN_ID_PATH,
    access: 'everybody',
    show: async (visit) => {
      // It uses up the way, and whoever asks for the head alone is no browser that comes back.
      if (visit.exchange.request.method === 'HEAD') throw pageNotFound();
      // As a form: what is refused is noted, and may ask the provider.
      parts.frame.admitStranger(visit.address);
      let back = '/sign-in';
      try {
        const returned = await finish(parts, visit);
        back = returnPathOf(returned.errand, returned.code);
        const { account, to, notice, cookie } = await completeErrand(parts, visit, returned);
        const detail = { way: 'openid', issuer: returned.proof.openId.issuer };
        const action = returned.errand.kind === 'link' ? 'openid.link' : 'session.create';
        await note(visit, { action, actor: account.id, object: account.id, detail });
        return { kind: 'see', to, cookie, ...(notice === undefined ? {} : { notice }) };
      } catch (fault) {
        if (fault instanceof ProviderUnavailable) return toProviderUnavailable(openId, back);
        if (!(fault instanceof PublicError) || fault.status >= 500) throw fault;
        await note(visit, { action: 'session.refuse', detail: { way: 'openid', code: fault.code } });
        return toRefused(fault, back);
      }
    },
  };
}

async function finish({ openId, frame }: OpenIdPageParts, { exchange, path, query }: Visit): Promise<Returned> {
  const browserText = frame.providerCookie.read(exchange.request.headers.cookie);
  const url = new URL(`${path}?${query}`, frame.origin);
  const { errand, secret, proof } = await openId.finish({ url, browserText });
  return { errand: JSON.parse(errand) as SignInPurpose, code: secret, proof };
}

function completeErrand(parts: OpenIdPageParts, visit: Visit, returned: Returned): Promise<SignInResult> {
  const { errand, ...rest } = returned;
  if (errand.kind === 'sign in') return signIn(parts, visit, { ...rest, errand });
  return errand.kind === 'link' ? link(parts, visit, { ...rest, errand }) : accept(parts, visit, { ...rest, errand });
}

/** Somebody who was sent for one kind of thing. */
type ReturnedFor<K extends SignInPurpose['kind']> = Omit<Returned, 'errand'> & {
  readonly errand: Extract<SignInPurpose, { kind: K }>;
};

async function signIn(
  parts: OpenIdPageParts,
  visit: Visit,
  { errand, proof }: ReturnedFor<'sign in'>,
): Promise<SignInResult> {
  const { account, text } = await parts.signIn.byOpenId({ ...fromOf(parts, visit), proof });
  return { account, cookie: parts.frame.cookie.toSetCookie(text), to: toReturnPath(errand.next) };
}

/** The session that asked for it is the one that gets it: whoever has signed in as somebody else meanwhile does not. */
async function link(
  parts: OpenIdPageParts,
  visit: Visit,
  { errand, proof }: ReturnedFor<'link'>,
): Promise<SignInResult> {
  const { session } = visit;
  if (session === null || session.id !== errand.sessionId)
    throw new PublicError('UNAUTHORISED_REQUEST', {
      message: 'You have signed out meanwhile: sign in, and begin again.',
    });
  const { accountId } = session;
  const account = await linkOpenId(contextOf(parts, visit), { accountId, openId: proof.openId });
  return { account, cookie: await beginSession(parts, visit, { account }), to: '/settings', notice: 'linked' };
}

/** With a link: by an invitation the account that has signed in so before, else a new one, or one that is let in again. */
async function accept(parts: OpenIdPageParts, visit: Visit, returned: ReturnedFor<'accept'>): Promise<SignInResult> {
  const joined = await join(parts, visit, returned);
  const account = joined ?? (await acceptLink(parts, visit, returned));
  // Whoever has just come by a link has proved as much as with a password of their choice; an account that stood has not.
  const of = joined === null ? { account } : { account, signedInAt: signedInAtOf(returned.proof) };
  return { account, cookie: await beginSession(parts, visit, of), to: '/' };
}

async function join(parts: OpenIdPageParts, visit: Visit, { errand, code, proof }: ReturnedFor<'accept'>) {
  const accounts = await parts.accounts.all();
  const account = findByOpenId(accounts, proof.openId);
  if (errand.path !== INVITATION_PATH || account === null) return null;
  const joining = { text: code, accountId: account.id };
  if (findJoinable(accounts, joining, Date.now()) === null) throw invalidLink();
  return joinInvitation(contextFor(parts, visit, account.id), joining);
}

async function acceptLink(parts: OpenIdPageParts, visit: Visit, { errand, code, proof }: ReturnedFor<'accept'>) {
  const { path, login, name } = errand;
  const way = createLinks(parts).find((each) => each.path === path);
  const found = (await way?.find(code)) ?? null;
  if (way === undefined || found === null) throw invalidLink();
  const person = { id: idFor(found), login, name, passwordHash: null, passkey: null, openId: proof.openId };
  return way.accept(contextFor(parts, visit, person.id), code, person);
}

/** What was wrong, in a page that leads back: it is never the provider's own words. */
function toRefused({ status, message }: PublicError, back: string): Answer {
  const content = html`<p role="alert">${message}</p>
<p><a class="button" href="${back}">Back</a></p>`;
  return { kind: 'page', status, title: 'You were not let in', content };
}
