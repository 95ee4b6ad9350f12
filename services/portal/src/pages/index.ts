import type { OneTimeTokens, OpenIdSignIn, Passwords, Sessions, SignIn } from '@playline/access-keys';
import type { FrameParts } from '../frame/frame-parts.ts';
import type { PortalPage } from '../frame/page.ts';
import type { PortalParts } from '../portal-parts.ts';
import type { WriteAudit } from '../write-audit.ts';
import { createAccountsPage } from './accounts/page.ts';
import { createActivitiesPage } from './activities/page.ts';
import { createAlertsPage } from './alerts/page.ts';
import { createAnalystSettingsPage } from './analyst-settings/page.ts';
import { createAuditPages } from './audit/page.ts';
import { createCollectionsPage } from './collections/page.ts';
import { createConnectPage } from './connect/page.ts';
import { createDemoPage } from './demo/page.ts';
import { createErasurePage } from './erasures/erasure.ts';
import { createErasuresPage, createReceiptPage } from './erasures/page.ts';
import { createExplorePage } from './explore/page.ts';
import { createHomePage } from './home/page.ts';
import { createKeysPage } from './keys/page.ts';
import { createLimitsPage } from './limits/page.ts';
import { createLinkPages } from './links/page.ts';
import { createLiveEventsPage } from './live/events.ts';
import { createLivePage } from './live/page.ts';
import { createMembersPage } from './members/page.ts';
import { createMintsPage } from './mints/page.ts';
import { createOpenIdPage } from './open-id/page.ts';
import { createOverviewPages } from './overview/page.ts';
import { createPeoplePage } from './people/page.ts';
import { createProjectPage } from './project/page.ts';
import { createRateLimitKeysPage } from './rate-limit-keys/page.ts';
import { createRejectionsPage } from './rejections/page.ts';
import { createPasskeyCreationPage, createSettingsPage } from './settings/page.ts';
import { createPasskeyRequestPage, createSignInPage, createSignOutPage } from './sign-in/page.ts';
import { createSignableKeysPage } from './signable-keys/page.ts';

export interface PageParts extends PortalParts {
  readonly frame: FrameParts;
  readonly sessions: Sessions;
  readonly oneTimeTokens: OneTimeTokens;
  readonly signIn: SignIn;
  readonly openId: OpenIdSignIn | null;
  readonly passwords: Passwords;
  readonly writeAudit: WriteAudit;
}

export function createPages(parts: PageParts): PortalPage[] {
  return [
    createHomePage(parts),
    createProjectPage(parts),
    ...createOverviewPages(parts),
    createAlertsPage(parts),
    createAnalystSettingsPage(parts),
    createKeysPage(parts),
    createCollectionsPage(parts),
    createSignableKeysPage(parts),
    createConnectPage(parts),
    createRejectionsPage(parts),
    createPeoplePage(parts),
    createErasuresPage(parts),
    createMintsPage(parts),
    createActivitiesPage(parts),
    createErasurePage(parts),
    createReceiptPage(parts),
    createLimitsPage(parts),
    createDemoPage(parts),
    createLivePage(parts),
    createExplorePage(parts),
    createLiveEventsPage(parts),
    ...createAuditPages(parts),
    createRateLimitKeysPage(parts),
    createSignInPage(parts),
    createPasskeyRequestPage(parts),
    createSignOutPage(parts),
    ...createLinkPages(parts),
    ...(parts.openId === null ? [] : [createOpenIdPage(parts, parts.openId)]),
    createSettingsPage(parts),
    createPasskeyCreationPage(parts),
    createMembersPage(parts),
    createAccountsPage(parts),
  ];
}
