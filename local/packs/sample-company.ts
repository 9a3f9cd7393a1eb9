/** A small company of made-up people, what they do, a shop and three films: the same at every first start. */

const FIRST_NAMES = ['June', 'Amir', 'Beatriz', 'Chen', 'Dagny', 'Emeka', 'Farah', 'Goran'];
const LAST_NAMES = ['Jones', 'Okafor', 'Silva', 'Wang', 'Lindqvist', 'Jones', 'Haddad', 'Novak'];
const DEPARTMENTS = ['Sales', 'Marketing', 'Engineering', 'Finance'];
const TITLES = ['Manager', 'Senior Associate', 'Associate', 'Specialist', 'Analyst', 'Assistant'];
const STAFF_EACH = 6;
const FIRST_ID = 123;
const DAY_MS = 24 * 60 * 60 * 1_000;

export const sampleEmployees = DEPARTMENTS.flatMap((department, group) =>
  TITLES.slice(0, STAFF_EACH).map((title, index) => {
    const number = FIRST_ID + group * 100 + index;
    const firstName = FIRST_NAMES[(index + group * 3) % FIRST_NAMES.length] ?? '';
    const lastName = LAST_NAMES[(index + group * 5) % LAST_NAMES.length] ?? '';
    // The very first is plain jonesj; the others carry their number, as names repeat.
    const name = `${lastName}${firstName[0]}`.toLowerCase() + (number === FIRST_ID ? '' : number);
    return {
      department,
      employeeId: String(number).padStart(6, '0'),
      email: `${name}@contoso.com`,
      firstName,
      lastName,
      phone: `555-${String(number).padStart(4, '0')}`,
      jobTitle: `${department} ${title}`,
      hireDate: `${2010 + index}-0${1 + group}-15`,
      birthDate: `${1970 + index * 3}-1${group % 3}-0${1 + index}`,
      nationalId: `000-00-${String(number).padStart(4, '0')}`,
      vacationHours: 40 + index * 8,
      age: 50 - index * 3,
    };
  }),
);

const sampleDepartments = DEPARTMENTS.map((department) => ({
  department,
  description: `All of ${department}`,
  managerId: sampleEmployees.find((employee) => employee.department === department)?.employeeId,
}));

const CATEGORIES = ['Travel', 'Meals', 'Hotel', 'Training'];
const DOORS = ['Main entrance', 'Garage', 'Archive'];
/** One pixel. */
const PHOTO = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

/** What is loaded through the API, in this order; those of one step at once. */
export interface SampleRequest {
  readonly method: 'POST' | 'PATCH' | 'PUT';
  readonly path: string;
  /** Sent as it is where it is bytes, and else as JSON. */
  readonly body: object | Uint8Array<ArrayBuffer>;
}

/** Ids are told from their content, so that a load that is begun again finds what is there. */
export function sampleRequests(now: number): readonly SampleRequest[][] {
  const post = (path: string, list: readonly object[]) => list.map((body) => ({ method: 'POST', path, body }) as const);
  return [
    post('employees', sampleEmployees),
    post('departments', sampleDepartments),
    [...post('reviews', reviews()), ...post('logins', logins(now)), ...post('expenses', expenses(now))],
    [...post('doorevents', doorEvents(now)), ...messages(now), ...post('people', people())],
    [{ method: 'PUT', path: 'employees/Sales/000123/photo', body: new Uint8Array(Buffer.from(PHOTO, 'base64')) }],
    [...post('customers', CUSTOMERS), ...post('products', PRODUCTS), ...post('orders', ORDERS)],
    post('movies', MOVIES),
  ];
}

/** The first four employees on each of the last four days. */
const some = sampleEmployees.slice(0, 4).flatMap((employee) => [0, 1, 2, 3].map((day) => ({ employee, day })));

function id(kind: number, index: number): string {
  return `00000000-0000-4000-8000-${String(kind * 1000 + index).padStart(12, '0')}`;
}

/** Nine o'clock, so many days ago. */
function at(now: number, day: number): string {
  return new Date(Math.floor(now / DAY_MS - day) * DAY_MS + 9 * 60 * 60 * 1_000).toISOString();
}

function reviews() {
  return sampleEmployees.slice(0, 4).flatMap(({ department, employeeId, firstName }, index) =>
    [2023, 2024, 2025].map((year) => ({
      department,
      employeeId,
      year,
      rating: 1 + ((index + year) % 5),
      comments: `${firstName} has done well in ${year}.`,
    })),
  );
}

function expenses(now: number) {
  return some.map(({ employee: { employeeId }, day }, index) => ({
    employeeId,
    at: at(now, day),
    claimId: id(1, index),
    amount: 12.5 * (index + 1),
    category: CATEGORIES[index % CATEGORIES.length],
  }));
}

function doorEvents(now: number) {
  return some.map(({ employee: { department, employeeId }, day }, index) => ({
    department,
    employeeId,
    hour: at(now, day).replace(/\D/g, '').slice(0, 10),
    eventId: id(2, index),
    door: DOORS[index % DOORS.length],
  }));
}

function logins(now: number) {
  return sampleEmployees.slice(0, 3).flatMap(({ employeeId }, index) =>
    [0, 1, 2].map((day) => ({
      employeeId,
      at: at(now, day),
      loginId: id(3, index * 3 + day),
      succeeded: day !== 1,
      address: `192.0.2.${index + 1}`,
    })),
  );
}

/** Of yesterday by the hour, and of the year so far by the day. */
function messages(now: number): SampleRequest[] {
  const [day = ''] = at(now, 1).split('T');
  const year = day.slice(0, 4);
  const daysSoFar = Math.floor((Date.parse(day) - Date.parse(`${year}-01-01`)) / DAY_MS) + 1;
  const counts = (first: number, length: number, most: number) =>
    Object.fromEntries(Array.from({ length }, (_, index) => [first + index, (index * 7) % most]));
  return sampleEmployees.slice(0, 2).flatMap(({ employeeId }) => [
    { method: 'PATCH', path: `messagehours/${employeeId}/${day}`, body: { counts: counts(0, 24, 12) } },
    { method: 'PATCH', path: `messageyears/${employeeId}/${year}`, body: { counts: counts(1, daysSoFar, 60) } },
  ]);
}

function people() {
  const staff = sampleEmployees.slice(0, 3).map(({ employeeId, firstName, lastName, email, jobTitle }) => ({
    kind: 'employee',
    country: 'UK',
    personId: `e-${employeeId}`,
    firstName,
    lastName,
    email,
    jobTitle,
  }));
  const buyers = CUSTOMERS.slice(0, 2).map(({ customerId, contactName, companyName }) => ({
    kind: 'customer',
    country: 'UK',
    personId: `c-${customerId}`,
    firstName: contactName.split(' ')[0],
    companyName,
  }));
  return [...staff, ...buyers];
}

const CUSTOMERS = [
  { city: 'London', customerId: 'HARBR', companyName: 'Harbour Teas', contactName: 'Ada Fenn', country: 'UK' },
  { city: 'London', customerId: 'LAMPS', companyName: 'Lamps and More', contactName: 'Noor Sattar', country: 'UK' },
  { city: 'Bern', customerId: 'ALPIN', companyName: 'Alpine Goods', contactName: 'Urs Meier', country: 'Switzerland' },
];

const PRODUCTS = [
  {
    categoryId: 91,
    productId: 901,
    productName: 'Green tea',
    categoryName: 'Drinks',
    unitPrice: 8.5,
    unitsInStock: 40,
  },
  { categoryId: 91, productId: 902, productName: 'Cider', categoryName: 'Drinks', unitPrice: 14, unitsInStock: 12 },
  { categoryId: 92, productId: 903, productName: 'Hard cheese', categoryName: 'Dairy', unitPrice: 21, unitsInStock: 7 },
];

const ORDERS = [
  { customerId: 'HARBR', orderId: 10_001, orderDate: '2026-11-19', shipCity: 'London', freight: 12.5 },
  { customerId: 'HARBR', orderId: 10_002, orderDate: '2026-11-20', shipCity: 'London', freight: 3.25 },
  { customerId: 'ALPIN', orderId: 10_003, orderDate: '2026-11-20', shipCity: 'Bern', freight: 40 },
];

const MOVIES = [
  { title: 'The Kid', year: 1921, genres: ['Comedy', 'Silent'], cast: ['Charlie Chaplin', 'Jackie Coogan'] },
  { title: 'Safety Last!', year: 1923, genres: ['Comedy', 'Silent'], cast: ['Harold Lloyd', 'Mildred Davis'] },
  { title: 'City Lights', year: 1931, genres: ['Comedy', 'Romance'], cast: ['Charlie Chaplin', 'Virginia Cherrill'] },
];
