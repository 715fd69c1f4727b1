//! From a row of the hook table to an exported function.

/// Builds the hook table from rows `kind symbol [base since stream] (arguments) => handler;`:
/// `Hook` (its index), the route table, and one exported function per row.
///
/// * `call` rows hand the driver's function and the arguments to `handler`.
/// * `count` rows name the counter of the thread's launch line; they are written in assembly, keep
///   every argument in place and jump to the driver, so one form serves all signatures.
macro_rules! hook_table {
    ($(
        $kind:ident $symbol:ident [$base:ident $since:literal $stream:ident]
        $( ($($argument:ident : $type:ty),*) => $module:ident::$handler:ident )? $( += $counter:ident )? ;
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
            $( hook_table!(@$kind $symbol $( ($($argument : $type),*) => $module::$handler )? $( += $counter )?); )*
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
                ".cfi_startproc",
                "endbr64",
                "mov r11, qword ptr [rip + aegis_thread_slot@GOTTPOFF]",
                "mov r11, qword ptr fs:[r11]",
                "test r11, r11",
                "jz 2f",
                "mov r11, qword ptr [r11]",
                "mov rax, qword ptr [rip + {reals} + {offset}]",
                "test r11, r11",
                "jz 2f",
                "test rax, rax",
                "jz 2f",
                "inc qword ptr [r11 + {counter}]",
                "jmp rax",
                "2:",
                "push rdi",
                ".cfi_adjust_cfa_offset 8",
                "push rsi",
                ".cfi_adjust_cfa_offset 8",
                "push rdx",
                ".cfi_adjust_cfa_offset 8",
                "push rcx",
                ".cfi_adjust_cfa_offset 8",
                "push r8",
                ".cfi_adjust_cfa_offset 8",
                "push r9",
                ".cfi_adjust_cfa_offset 8",
                "sub rsp, 8",
                ".cfi_adjust_cfa_offset 8",
                "mov edi, {hook}",
                "mov esi, {counter}",
                "call {slow}",
                "add rsp, 8",
                ".cfi_adjust_cfa_offset -8",
                "pop r9",
                ".cfi_adjust_cfa_offset -8",
                "pop r8",
                ".cfi_adjust_cfa_offset -8",
                "pop rcx",
                ".cfi_adjust_cfa_offset -8",
                "pop rdx",
                ".cfi_adjust_cfa_offset -8",
                "pop rsi",
                ".cfi_adjust_cfa_offset -8",
                "pop rdi",
                ".cfi_adjust_cfa_offset -8",
                "jmp rax",
                ".cfi_endproc",
                reals = sym real::REALS,
                offset = const 8 * Hook::$symbol as usize,
                counter = const core::mem::offset_of!(LaunchLine, $counter),
                hook = const Hook::$symbol as usize,
                slow = sym launch::count_slowly,
            )
        }
    };
}
pub(super) use hook_table;
