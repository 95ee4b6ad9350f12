/** User types, from least to most privileged. A nonmember is signed in but has no role in the project. */
export const USER_TYPES = ['visitor', 'nonmember', 'analyst', 'developer', 'owner', 'administrator'] as const;
export type UserType = (typeof USER_TYPES)[number];

const READERS = 'sign-in 404 200 200 200 200';
const DEVELOPERS = 'sign-in 404 404 200 200 200';
const SIGNED_IN = 'sign-in 200 200 200 200 200';
const ADMINISTRATORS = 'sign-in 404 404 404 404 200';
const PUBLIC = '200 200 200 200 200 200';

// The expected statuses for each page and form, one per user type. `sign-in` means a redirect to the sign-in page.
// `fresh` means that the form requires a sign-in within the last ten minutes.
export const EXPECTED_STATUSES: Readonly<Record<string, string>> = {
  'GET /': SIGNED_IN,
  'POST / create': 'sign-in 404 404 404 404 303',
  'GET /projects/:project': READERS,
  'POST /projects/:project rename': 'sign-in 404 404 404 303 303',
  'POST /projects/:project add-environment': 'sign-in 404 404 303 303 303',
  // 409: the project still has live keys.
  'POST /projects/:project archive': 'sign-in 404 404 404 409 409 fresh',
  'GET /projects/:project/environments/:environment/keys': READERS,
  // 409: a key already exists.
  'POST /projects/:project/environments/:environment/keys create': 'sign-in 404 404 409 409 409 fresh',
  'POST /projects/:project/environments/:environment/keys refresh': 'sign-in 404 404 200 200 200 fresh',
  'POST /projects/:project/environments/:environment/keys revoke': 'sign-in 404 404 303 303 303 fresh',
  'POST /projects/:project/environments/:environment/keys origins': 'sign-in 404 404 303 303 303',
  'POST /projects/:project/environments/:environment/keys test': 'sign-in 404 404 200 200 200',
  'GET /projects/:project/environments/:environment/collections': READERS,
  'POST /projects/:project/environments/:environment/collections link': 'sign-in 404 404 303 303 303',
  'POST /projects/:project/environments/:environment/collections rename': 'sign-in 404 404 303 303 303',
  // 409: the collection is already linked to this project.
  'POST /projects/:project/environments/:environment/collections relink': 'sign-in 404 404 409 409 409',
  'POST /projects/:project/environments/:environment/collections unlink': 'sign-in 404 404 404 303 303',
  'GET /projects/:project/environments/:environment/signable-keys': READERS,
  // 409: the portal has no signer public key.
  'POST /projects/:project/environments/:environment/signable-keys create': 'sign-in 404 404 409 409 409 fresh',
  'POST /projects/:project/environments/:environment/signable-keys disable': 'sign-in 404 404 303 303 303',
  'POST /projects/:project/environments/:environment/signable-keys enable': 'sign-in 404 404 303 303 303 fresh',
  'GET /projects/:project/environments/:environment/connect': READERS,
  'POST /projects/:project/environments/:environment/connect create': 'sign-in 404 200 200 200 200 fresh',
  // 404: an analyst sees only the own credentials; these belong to the developer.
  'POST /projects/:project/environments/:environment/connect revoke': 'sign-in 404 404 303 303 303 fresh',
  'GET /projects/:project/alerts': READERS,
  'POST /projects/:project/alerts acknowledge': 'sign-in 404 404 303 303 303',
  'POST /projects/:project/alerts save': 'sign-in 404 404 404 303 303',
  'POST /projects/:project/alerts test': 'sign-in 404 404 404 303 303',
  'POST /projects/:project/alerts key': 'sign-in 404 404 404 200 200 fresh',
  'GET /projects/:project/analyst-settings': READERS,
  'POST /projects/:project/analyst-settings save': 'sign-in 404 404 404 303 303',
  'GET /projects/:project/environments/:environment/limits': READERS,
  'POST /projects/:project/environments/:environment/limits limit': 'sign-in 404 404 404 303 303',
  'POST /projects/:project/environments/:environment/limits cap': 'sign-in 404 404 404 404 303',
  'GET /projects/:project/environments/:environment': 'sign-in 404 303 303 303 303',
  'GET /projects/:project/environments/:environment/overview': READERS,
  'GET /projects/:project/environments/:environment/demo': 'sign-in 404 404 404 200 200',
  'POST /projects/:project/environments/:environment/demo load': 'sign-in 404 404 404 303 303',
  'GET /projects/:project/environments/:environment/live': READERS,
  'POST /projects/:project/environments/:environment/live person': 'sign-in 404 404 303 303 303',
  'GET /projects/:project/environments/:environment/live/events': READERS,
  'GET /projects/:project/environments/:environment/explore': READERS,
  'POST /projects/:project/environments/:environment/explore person': 'sign-in 404 404 303 303 303',
  'GET /projects/:project/environments/:environment/rejections': READERS,
  'GET /projects/:project/environments/:environment/people': DEVELOPERS,
  'POST /projects/:project/environments/:environment/people search': 'sign-in 404 404 303 303 303',
  'POST /projects/:project/environments/:environment/people erase': 'sign-in 404 404 404 303 303 fresh',
  'POST /projects/:project/environments/:environment/people unlink': 'sign-in 404 404 404 400 400 fresh',
  'GET /projects/:project/environments/:environment/erasures': READERS,
  'GET /projects/:project/environments/:environment/mints': READERS,
  'GET /projects/:project/environments/:environment/activities': READERS,
  'GET /projects/:project/environments/:environment/erasures/:erasure': READERS,
  'GET /projects/:project/environments/:environment/erasures/:erasure/receipt': READERS,
  'GET /projects/:project/audit': 'sign-in 404 404 404 200 200',
  'GET /instance/audit': ADMINISTRATORS,
  'GET /instance/rate-limit-keys': ADMINISTRATORS,
  'POST /instance/rate-limit-keys create': `${ADMINISTRATORS} fresh`,
  'POST /instance/rate-limit-keys refresh': `${ADMINISTRATORS} fresh`,
  'POST /instance/rate-limit-keys revoke': 'sign-in 404 404 404 404 303 fresh',
  'GET /sign-in': PUBLIC,
  // 401: the password is wrong.
  'POST /sign-in password': '401 401 401 401 401 401',
  'POST /sign-in passkey': '401 401 401 401 401 401',
  'POST /sign-in openid': '303 303 303 303 303 303',
  'GET /sign-in/passkey': PUBLIC,
  // 401: no sign-in was started.
  'GET /sign-in/openid': '401 401 401 401 401 401',
  'GET /sign-out': SIGNED_IN,
  'POST /sign-out sign-out': 'sign-in 303 303 303 303 303',
  'GET /first-sign-in': PUBLIC,
  // 404: an administrator already exists, so the link is invalid.
  'POST /first-sign-in accept': '303 303 303 303 303 404',
  'GET /first-sign-in/passkey': PUBLIC,
  'GET /invitation': PUBLIC,
  'POST /invitation accept': '303 303 303 303 303 303',
  'POST /invitation join': 'sign-in 303 303 303 303 303',
  'GET /invitation/passkey': PUBLIC,
  'GET /reset': PUBLIC,
  'POST /reset accept': '303 303 303 303 303 303',
  'GET /reset/passkey': PUBLIC,
  'GET /settings': SIGNED_IN,
  'POST /settings rename': 'sign-in 303 303 303 303 303',
  'POST /settings password': 'sign-in 303 303 303 303 303 fresh',
  // 400: the value is not a passkey.
  'POST /settings add-passkey': 'sign-in 400 400 400 400 400 fresh',
  // 409: the passkey is the owner's only credential.
  'POST /settings remove-passkey': 'sign-in 404 404 404 409 404 fresh',
  'POST /settings link-openid': 'sign-in 303 303 303 303 303 fresh',
  // 409: the account is not linked.
  'POST /settings unlink-openid': 'sign-in 409 409 409 409 409 fresh',
  'POST /settings end': 'sign-in 303 303 303 303 303',
  'POST /settings end-others': 'sign-in 303 303 303 303 303',
  'GET /settings/passkey': SIGNED_IN,
  'GET /projects/:project/members': READERS,
  'POST /projects/:project/members invite': 'sign-in 404 404 404 200 200 fresh',
  'POST /projects/:project/members role': 'sign-in 404 404 404 303 303 fresh',
  'POST /projects/:project/members remove': 'sign-in 404 404 404 303 303 fresh',
  'POST /projects/:project/members revoke': 'sign-in 404 404 404 303 303',
  'GET /instance/accounts': ADMINISTRATORS,
  'POST /instance/accounts invite': `${ADMINISTRATORS} fresh`,
  'POST /instance/accounts revoke': 'sign-in 404 404 404 404 303 fresh',
  'POST /instance/accounts promote': 'sign-in 404 404 404 404 303 fresh',
  'POST /instance/accounts demote': 'sign-in 404 404 404 404 303 fresh',
  'POST /instance/accounts disable': 'sign-in 404 404 404 404 303 fresh',
  'POST /instance/accounts enable': 'sign-in 404 404 404 404 303 fresh',
  'POST /instance/accounts remove': 'sign-in 404 404 404 404 303 fresh',
};
