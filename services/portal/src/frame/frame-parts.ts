import type { AccountRecord, OneTimeTexts, ProjectRecord, SessionRecord, Sessions } from '@playline/access-keys';
import type { BytesInFlight, ClientAddressOf, Exchange } from '@playline/http';
import type { BrowserCookie, PortalCookie } from './cookies.ts';
import type { FormTokens } from './form-tokens.ts';
import type { PortalShares } from './shares.ts';

/** What all pages are shown with. */
export interface FrameParts {
  /** PORTAL_ORIGIN */
  readonly origin: URL;
  readonly cookie: PortalCookie;
  readonly browserCookie: BrowserCookie;
  /** Of browsers that were redirected to the identity provider. */
  readonly providerCookie: PortalCookie;
  readonly tokens: FormTokens;
  readonly sessions: Pick<Sessions, 'find'>;
  readonly oneTime: Pick<OneTimeTexts, 'spend'>;
  /** @throws Error while the accounts are unknown; then no one gets in */
  accounts(): Promise<readonly AccountRecord[]>;
  projects(): Promise<readonly ProjectRecord[]>;
  /** Counts a form sent before sign-in. @throws PublicError TOO_MANY_REQUESTS_ERROR beyond the limit of the address */
  readonly admitStranger: (address: string) => void;
  /** The same for a signed-in account, by its id. */
  readonly admitMember: (accountId: string) => void;
  readonly addressOf: ClientAddressOf;
  readonly shares: PortalShares;
  /** Limits the memory of forms that are being received. */
  readonly forms: BytesInFlight;
  readonly wallClockMs: () => number;
  readonly onFault: (exchange: Exchange, fault: unknown) => void;
}

/** A signed-in person. */
export interface Visitor {
  readonly account: AccountRecord;
  readonly session: SessionRecord;
}
