import type {
  AccountRecord,
  Action,
  Author,
  ProjectEnvironment,
  ProjectRecord,
  SessionRecord,
} from '@playline/access-keys';
import type { HtmlValue, Markup } from '@playline/api-docs';
import type { Exchange } from '@playline/http';

/**
 * Who may see a page, or do a deed: everybody; whoever has signed in; or whoever may do an action, in the project that the
 * path names.
 */
export type Access = 'everybody' | 'signed in' | Action;

/** What somebody sent with a form, trimmed; '' for a field that is not there. Repeated fields: see `all`. */
export interface FormValues {
  text(name: string): string;
  all(name: string): readonly string[];
}

/** One request for a page, as far as it has been judged: what the path names exists, and the account may see it. */
export interface Visit {
  readonly exchange: Exchange;
  /** The path as it was asked for, without its query. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** What a browser says it is, at most 200 characters, and where from. */
  readonly userAgent: string;
  readonly address: string;
  /** Aborted when whoever asked has left: what is read for the page goes no further. Pass it to reads. */
  readonly signal: AbortSignal;
  /** Null for whoever has not signed in: only pages for everybody are visited so. */
  readonly account: AccountRecord | null;
  readonly session: SessionRecord | null;
  /** The one of `:project` in the path; null where there is none in it. */
  readonly project: ProjectRecord | null;
  /** The one of `:environment` in the path, by its name. */
  readonly environment: ProjectEnvironment | null;
  /** The other parts of the path that a name stands for. */
  readonly params: Readonly<Record<string, string>>;
  /** Whether the account may do something in the project of the path, or in another. */
  mayDo(action: Action, projectId?: string): boolean;
  /** For the records of a change: the account, and the trace id of this request. */
  readonly author: Author;
  /** A form that does a deed of this page, with its one-use token in it; `content` are fields and buttons. */
  form(deed: string, content: HtmlValue, options?: FormOptions): Markup;
}

export interface FormOptions {
  /** Instead of this page. */
  readonly path?: string;
  /** A class of the style sheet. */
  readonly className?: string;
}

/** What a page answers. */
export type Answer =
  | {
      readonly kind: 'page';
      readonly title: string;
      readonly content: HtmlValue;
      /** 200 when absent. */
      readonly status?: number;
      /** Files of `assets` that it needs besides `portal.js`. */
      readonly scripts?: readonly string[];
      /** Origins that its forms may lead to, besides the portal's own. */
      readonly formsTo?: readonly string[];
    }
  /** After a deed: the browser asks for `to`, a path of ours, and shows the notice of that name there. */
  | {
      readonly kind: 'see';
      readonly to: string;
      readonly notice?: string;
      readonly cookie?: string | readonly string[];
    }
  /** After a deed: the browser leaves for an address that is not ours, one of the `formsTo` of the page. */
  | { readonly kind: 'leave'; readonly to: URL; readonly cookie: string }
  /** A file to keep. */
  | { readonly kind: 'file'; readonly name: string; readonly type: string; readonly text: string }
  /** A file as it is made, of any length; one that cannot be made to its end is broken off, so that nobody takes it for whole. */
  | { readonly kind: 'long file'; readonly name: string; readonly type: string; readonly pieces: AsyncIterable<string> }
  /** The page has answered the exchange itself, such as by a stream. */
  | { readonly kind: 'answered' };

/** Something that a form does. */
export interface FormAction {
  readonly access: Access;
  /** Asks for a sign-in of the last ten minutes. */
  readonly needsFreshSignIn?: boolean;
  /**
   * Does it. A `PublicError` that it throws is shown above the page, with what was typed still there.
   */
  run(visit: Visit, values: FormValues): Promise<Answer>;
}

/** One page: a folder of `pages`. */
export interface PortalPage {
  /** Path for express, such as `/projects/:project/members`. `:project` and `:environment` are looked up. */
  readonly path: string;
  readonly access: Access;
  /** Shows it. @param fault what a deed that failed says, and what had been typed */
  show(visit: Visit, fault?: { readonly message: string; readonly values: FormValues }): Answer | Promise<Answer>;
  /** By the name that forms give (`visit.form(name, …)`). */
  readonly actions?: Readonly<Record<string, FormAction>>;
  /** Sentences that a deed leads to, by the name it gives (`{ kind: 'see', notice }`). */
  readonly notices?: Readonly<Record<string, string>>;
}
