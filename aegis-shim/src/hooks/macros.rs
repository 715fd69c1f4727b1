//! From a row of the hook table to an exported function.

/// Assembly: the thread's cell in r11 and its launch line in rax, or the slow path.
macro_rules! enter {
    () => {
        concat!(
            ".cfi_startproc\n",
            "endbr64\n",
            "mov r11, qword ptr [rip + aegis_thread_slot@GOTTPOFF]\n",
            "mov r11, qword ptr fs:[r11]\n",
            "test r11, r11\n",
            "jz 2f\n",
            "mov rax, qword ptr [r11]\n",
            "test rax, rax\n",
            "jz 2f\n",
            "cmp qword ptr [rip + {reals} + {offset}], 0\n",
            "jz 2f\n",
        )
    };
}
pub(super) use enter;

/// Assembly: what is launched, as a number in r10 (see [`aegis_common::abi::trace`]), from the arguments of
///
/// * `function_and_grid`: `(function, x, y, z, ...)`;
/// * `config`: `(config, function, ...)`, where the grid begins the config, which may be null;
/// * `handle`: `(function or graph, ...)`.
///
/// The grid is mixed as `K x + 8 y + z` in 32 bits: the upper halves of 32-bit arguments may hold
/// anything.
macro_rules! launched {
    (function_and_grid) => {
        concat!(
            "imul eax, esi, 0x1E3779B1\n",
            "lea eax, [rax + 8*rdx]\n",
            "add eax, ecx\n",
            "mov r10, rdi\n",
            "shl r10, 32\n",
            "or r10, rax\n",
        )
    };
    (config) => {
        concat!(
            "xor eax, eax\n",
            "test rdi, rdi\n",
            "jz 3f\n",
            "imul eax, dword ptr [rdi], 0x1E3779B1\n",
            "mov r10d, dword ptr [rdi + 4]\n",
            "lea eax, [rax + 8*r10]\n",
            "add eax, dword ptr [rdi + 8]\n",
            "3:\n",
            "mov r10, rsi\n",
            "shl r10, 32\n",
            "or r10, rax\n",
        )
    };
    (handle) => {
        concat!("mov r10, rdi\n", "shl r10, 32\n")
    };
}
pub(super) use launched;

/// Assembly: every argument kept, has the call counted by `count_slowly` and jumps where it says.
macro_rules! slow_path {
    () => {
        concat!(
            "2:\n",
            "push rdi\n",
            ".cfi_adjust_cfa_offset 8\n",
            "push rsi\n",
            ".cfi_adjust_cfa_offset 8\n",
            "push rdx\n",
            ".cfi_adjust_cfa_offset 8\n",
            "push rcx\n",
            ".cfi_adjust_cfa_offset 8\n",
            "push r8\n",
            ".cfi_adjust_cfa_offset 8\n",
            "push r9\n",
            ".cfi_adjust_cfa_offset 8\n",
            "sub rsp, 8\n",
            ".cfi_adjust_cfa_offset 8\n",
            "mov edi, {hook}\n",
            "mov esi, {counter}\n",
            "call {slow}\n",
            "add rsp, 8\n",
            ".cfi_adjust_cfa_offset -8\n",
            "pop r9\n",
            ".cfi_adjust_cfa_offset -8\n",
            "pop r8\n",
            ".cfi_adjust_cfa_offset -8\n",
            "pop rcx\n",
            ".cfi_adjust_cfa_offset -8\n",
            "pop rdx\n",
            ".cfi_adjust_cfa_offset -8\n",
            "pop rsi\n",
            ".cfi_adjust_cfa_offset -8\n",
            "pop rdi\n",
            ".cfi_adjust_cfa_offset -8\n",
            "jmp rax\n",
            ".cfi_endproc",
        )
    };
}
pub(super) use slow_path;

/// Builds the hook table from rows `kind symbol [base since stream] (arguments) => handler;`:
/// `Hook` (its index), the route table, and one exported function per row.
///
/// * `call` rows hand the driver's function and the arguments to `handler`.
/// * `count` rows name the counter of the thread's launch line; they are written in assembly, keep
///   every argument in place and jump to the driver, so one form serves all signatures.
/// * `launch` rows do that and leave a mark in the thread's trace, made of the arguments that `of`
///   names (see [`launched`]).
macro_rules! hook_table {
    ($(
        $kind:ident $symbol:ident [$base:ident $since:literal $stream:ident]
        $( ($($argument:ident : $type:ty),*) => $module:ident::$handler:ident )? $( += $counter:ident $( of $what:ident )? )? ;
    )*) => {
        /// Index of each hook.
        #[expect(non_camel_case_types, reason = "named as the driver's symbols")]
        #[derive(Clone, Copy)]
        #[repr(usize)]
        pub(crate) enum Hook { $($symbol),* }

        /// Number of hooks.
        pub(crate) const HOOKS: usize = [$(stringify!($symbol)),*].len();

        /// What each hook is known by.
        pub(crate) static ROUTES: [Route; HOOKS] = ROUTE_ROWS;
        const ROUTE_ROWS: [Route; HOOKS] = [$(Route {
            symbol: stringify!($symbol),
            base: stringify!($base),
            since: $since,
            per_thread: hook_table!(@stream $stream),
        }),*];
        static NAMES: Names<HOOKS> = Names::new(&ROUTE_ROWS);

        /// Symbol names with a terminating NUL, by hook.
        pub(crate) static SYMBOLS: [&CStr; HOOKS] = [$(hook_table!(@cstr $symbol)),*];

        /// The exported functions, by hook.
        pub(crate) fn address(hook: usize) -> usize {
            let functions: [usize; HOOKS] = [$(exports::$symbol as *const () as usize),*];
            functions.get(hook).copied().unwrap_or(0)
        }

        mod exports {
            use super::*;
            $( hook_table!(@$kind $symbol $( ($($argument : $type),*) => $module::$handler )? $( += $counter $( of $what )? )?); )*
        }
    };
    (@stream legacy) => { false };
    (@stream per_thread) => { true };
    (@cstr $symbol:ident) => {
        match CStr::from_bytes_with_nul(concat!(stringify!($symbol), "\0").as_bytes()) {
            Ok(name) => name,
            Err(_) => c"",
        }
    };
    (@call $symbol:ident ($($argument:ident : $type:ty),*) => $module:ident::$handler:ident) => {
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $symbol($($argument: $type),*) -> CuResult {
            type Real = unsafe extern "C" fn($($type),*) -> CuResult;
            match real::find(Hook::$symbol as usize) {
                real::Target::Driver(address) => {
                    // SAFETY: the driver's function of this name has this signature.
                    let real = unsafe { core::mem::transmute::<usize, Real>(address) };
                    // SAFETY: the arguments are passed on as the application gave them.
                    unsafe { $module::$handler(real, $($argument),*) }
                }
                real::Target::Other(address) => {
                    // SAFETY: what the application would have called without this library.
                    let real = unsafe { core::mem::transmute::<usize, Real>(address) };
                    // SAFETY: as above.
                    unsafe { real($($argument),*) }
                }
                real::Target::Missing => real::NO_DEVICE,
            }
        }
    };
    (@count $symbol:ident += $counter:ident) => {
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $symbol() {
            core::arch::naked_asm!(
                enter!(),
                "inc qword ptr [rax + {counter}]",
                "jmp qword ptr [rip + {reals} + {offset}]",
                slow_path!(),
                reals = sym real::REALS,
                offset = const 8 * Hook::$symbol as usize,
                counter = const core::mem::offset_of!(LaunchLine, $counter),
                hook = const Hook::$symbol as usize,
                slow = sym launch::count_slowly,
            )
        }
    };
    (@launch $symbol:ident += $counter:ident of $what:ident) => {
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $symbol() {
            core::arch::naked_asm!(
                enter!(),
                "inc qword ptr [rax + {counter}]",
                launched!($what),
                "mov r11, qword ptr [r11 + 8]",
                "mov eax, dword ptr [r11]",
                "and eax, {last}",
                "add r10, qword ptr [r11 + {sum}]",
                "mov qword ptr [r11 + {sum}], r10",
                "mov qword ptr [r11 + 8*rax + {entries}], r10",
                "inc qword ptr [r11]",
                "jmp qword ptr [rip + {reals} + {offset}]",
                slow_path!(),
                reals = sym real::REALS,
                offset = const 8 * Hook::$symbol as usize,
                counter = const core::mem::offset_of!(LaunchLine, $counter),
                sum = const core::mem::offset_of!(Trace, sum),
                last = const TRACE_ENTRIES - 1,
                entries = const core::mem::offset_of!(Trace, entries),
                hook = const Hook::$symbol as usize,
                slow = sym launch::count_slowly,
            )
        }
    };
}
pub(super) use hook_table;
