import type { OneTimeTexts, Sessions } from '@playline/access-keys';
import type { PortalPage } from '../frame/page.ts';
import type { FrameParts } from '../frame/parts-of-frame.ts';
import type { PortalParts } from '../portal-parts.ts';
import { createCollectionsPage } from './collections/page.ts';
import { createHomePage } from './home/page.ts';
import { createKeysPage } from './keys/page.ts';
import { createLimitsPage } from './limits/page.ts';
import { createLiveEventsPage } from './live/events.ts';
import { createLivePage } from './live/page.ts';
import { createProjectPage } from './project/page.ts';
import { createRateLimitKeysPage } from './rate-limit-keys/page.ts';
import { createSignableKeysPage } from './signable-keys/page.ts';

export interface PagesParts extends PortalParts {
  readonly frame: FrameParts;
  readonly sessions: Sessions;
  readonly oneTime: OneTimeTexts;
}

/** Every page of the portal; one line each. */
export function createPages(parts: PagesParts): PortalPage[] {
  return [
    createHomePage(parts),
    createProjectPage(parts),
    createKeysPage(parts),
    createCollectionsPage(parts),
    createSignableKeysPage(parts),
    createLimitsPage(parts),
    createLivePage(parts),
    createLiveEventsPage(parts),
    createRateLimitKeysPage(parts),
  ];
}
