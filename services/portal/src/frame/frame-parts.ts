import type { AccountRecord, OneTimeTokens, ProjectRecord, SessionRecord, Sessions } from '@playline/access-keys';
import type { BytesInFlight, ClientAddressOf, Exchange } from '@playline/http';
import type { BrowserCookie, PortalCookie } from './cookies.ts';
import type { FormTokens } from './form-tokens.ts';
import type { KeptForms } from './kept-forms.ts';
import type { PortalLimiters } from './limiters.ts';

export interface FrameParts {
  readonly origin: URL;
  readonly cookie: PortalCookie;
  readonly browserCookie: BrowserCookie;
  readonly providerCookie: PortalCookie;
  readonly openedCookie: PortalCookie;
  readonly keptForms: KeptForms;
  readonly tokens: FormTokens;
  readonly sessions: Pick<Sessions, 'find'>;
  readonly oneTimeTokens: Pick<OneTimeTokens, 'spend'>;
  /** @throws Error if the accounts cannot be read, in which case access is denied */
  accounts(): Promise<readonly AccountRecord[]>;
  projects(): Promise<readonly ProjectRecord[]>;
  /** Counts a form submitted before sign-in. @throws PublicError TOO_MANY_REQUESTS_ERROR */
  readonly admitAnonymous: (address: string) => void;
  readonly admitAccount: (accountId: string) => void;
  readonly addressOf: ClientAddressOf;
  readonly limiters: PortalLimiters;
  readonly formBytes: BytesInFlight;
  readonly wallClockMs: () => number;
  readonly onFault: (exchange: Exchange, fault: unknown) => void;
}

export interface Visitor {
  readonly account: AccountRecord;
  readonly session: SessionRecord;
}
