import { expect, it } from 'vitest';
import { createPortalApp } from '../../../services/portal/src/app.ts';
import { openPortal } from '../../../services/portal/src/test/open-portal.ts';
import { pathsOf, UNMEASURED } from './pages.ts';

/** Routes that answer the same bytes to everybody. */
const NO_PAGE = /^\/assets\/|\{\*unknown\}/;

it('the bench of the portal measures every page, or says why it does not', async () => {
  const portal = await openPortal();
  const routes = createPortalApp(portal.parts).routes;
  await portal.close();
  const pages = new Set(routes.filter(({ method }) => method === 'GET').map(({ path }) => path));
  const measured = pathsOf({ projectId: 'p', environment: 'e', invitation: '/invitation?code=c' });
  const isMeasured = (page: string) => {
    const pattern = new RegExp(`^${page.replace(/:\w+/g, '[^/?]+')}(\\?.*)?$`);
    return measured.some((path) => pattern.test(path));
  };
  const left = [...pages].filter((page) => !NO_PAGE.test(page) && !isMeasured(page));
  expect(left.toSorted()).toEqual(Object.keys(UNMEASURED).toSorted());
});
