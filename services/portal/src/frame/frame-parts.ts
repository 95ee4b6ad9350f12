import type { AccountRecord, OneTimeTexts, ProjectRecord, SessionRecord, Sessions } from '@playline/access-keys';
import type { BytesInFlight, ClientAddressOf, Exchange } from '@playline/http';
import type { BrowserCookie, PortalCookie, SessionCookie } from './cookies.ts';
import type { FormTokens } from './form-tokens.ts';
import type { PortalShares } from './shares.ts';

/** What all pages are shown with. */
export interface FrameParts {
  /** PORTAL_ORIGIN: the one address under which the portal is used. */
  readonly origin: URL;
  readonly cookie: SessionCookie;
  readonly browserCookie: BrowserCookie;
  /** Of browsers that were sent to a provider. */
  readonly providerCookie: PortalCookie;
  readonly tokens: FormTokens;
  readonly sessions: Pick<Sessions, 'find'>;
  readonly oneTime: Pick<OneTimeTexts, 'spend'>;
  /** As they are now. @throws Error while nobody can say: then nobody is let in */
  accounts(): Promise<readonly AccountRecord[]>;
  projects(): Promise<readonly ProjectRecord[]>;
  /**
   * Lets a form of somebody in who has not signed in: each leaves a note behind that it was sent, for hours.
   * @throws PublicError TOO_MANY_REQUESTS_ERROR when there were too many from the address
   */
  readonly admitStranger: (address: string) => void;
  /** The same for somebody who has, by the id of their account. */
  readonly admitMember: (accountId: string) => void;
  readonly addressOf: ClientAddressOf;
  readonly shares: PortalShares;
  /** Bounds the memory of forms that are received. */
  readonly forms: BytesInFlight;
  /** Instants of sessions are compared with it. */
  readonly wallClockMs: () => number;
  readonly onFault: (exchange: Exchange, fault: unknown) => void;
}

/** Who asks. */
export interface Visitor {
  readonly account: AccountRecord;
  readonly session: SessionRecord;
}
